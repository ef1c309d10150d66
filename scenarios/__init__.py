"""What is talked about, as pure data: the vocabulary, scenario packs, labelled data sets, text, files."""

"""Pure data: the vocabulary, scenario packs, labelled data sets, text, files."""

"""What is talked about: transcript vocabulary, scenario packs, knowledge base, labelled data."""

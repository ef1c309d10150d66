"""Pure data: the vocabulary, scenario packs, labelled data sets, text, files."""

if __name__ != "hallulab.scenarios":
    raise ImportError("this package is part of hallulab: import hallulab.scenarios")

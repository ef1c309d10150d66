"""What is talked about: transcript vocabulary, scenario packs, knowledge base, labelled data; and what every
package rests on: files, recordings, errors, and what has to be on the machine (`agents.machine`)."""

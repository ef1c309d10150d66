"""The chatbots under test, behind the `Chatbot` protocol."""

if __name__ != "hallulab.chatbots":
    raise ImportError("this package is part of hallulab: import hallulab.chatbots")

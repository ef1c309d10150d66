"""The chatbots under test, behind the `Chatbot` protocol."""

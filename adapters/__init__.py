"""What providers are like, and how a request and its answer are translated for them."""

"""The encoder panel: which networks turn an image into a vector, how they are loaded, and stored features."""

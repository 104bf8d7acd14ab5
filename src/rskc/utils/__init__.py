"""What all rooms use and what knows nothing of clusters: words, whole files, memory."""

"""Applications that CES changes by itself: what calls for a look at one, what is asked, and what is carried out."""

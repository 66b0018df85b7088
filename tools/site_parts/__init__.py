"""What tools/site is made of: headers rendered, pages gathered, links checked."""

"""`forget`: what is named goes from every place we can reach and does not come back; a receipt says what is left."""

"""A quantised network as one file, and its bytes read with nothing taken on trust."""

"""A network as the array sees it, whatever the array: whose maps lie side by side, and what cannot be mapped."""

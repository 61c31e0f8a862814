"""From a query and a price to mechanisms with exact noise."""

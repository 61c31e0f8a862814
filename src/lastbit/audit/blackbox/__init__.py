"""Black-box audit: find the event that tells two inputs apart best, fix it, then test it."""

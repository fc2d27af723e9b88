"""Tell Acme what Proctor's runs do."""

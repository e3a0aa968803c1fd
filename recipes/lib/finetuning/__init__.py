"""Provide the settings, plans and models that the recipes for fine-tuning share."""

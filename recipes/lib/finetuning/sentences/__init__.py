"""Provide the settings and stages that the recipes for classifying sentences and pairs of sentences share."""

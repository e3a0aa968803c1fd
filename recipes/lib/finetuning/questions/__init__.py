"""Provide the settings and stages that the recipes for extractive question answering share."""

"""Settings, plans and models shared by the recipes that fine-tune pretrained models."""

# Fine-tuning on English for zero-shot transfer to other languages, as in Chen et al. 2021 (DIET), section 4.2 and
# Table 7. The paper does not state which checkpoint it uses for XTREME; we take the best one, as for GLUE.
source "$ROOT/recipes/lib/finetuning/protocols/diet.sh"
epochs=3                          # Table 7
length=512                        # Table 7

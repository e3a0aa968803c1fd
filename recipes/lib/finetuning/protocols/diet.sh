# Fine-tuning as in Chen et al. 2021 (DIET), Table 7. Values that the paper does not state are BERT's, as in m1-m4.
source "$ROOT/recipes/lib/finetuning/protocols/m1-m4.sh"
learning_rates=1e-5,2e-5,3e-5,4e-5  # Table 7; the best combination of learning rate and epochs is reported
epochs=5,10                       # Table 7
seeds=1,2,3,4,5                   # Table 2: median of five runs
set_flag report centre median     # Table 2
keep=best                         # Table 2: best checkpoint of each run
segments=input                    # Table 2: for all models except diet-rel and diet-abs, which need --segments head
set_flag train validate-interval-updates 3500  # Table 7: a checkpoint every 3,500 updates
set_flag train save-interval-updates 3500

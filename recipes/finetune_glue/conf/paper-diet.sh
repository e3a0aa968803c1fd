# Models of base size on GLUE as in Chen et al. 2021 (DIET), Tables 2 and 7: the median of five runs. The paper lists CoLA
# among its tasks with segments; a single sentence of SST-2 or CoLA has one segment, so we add no segment encoding.
source "$ROOT/recipes/lib/finetuning/protocols/diet.sh"
tasks=MNLI,QQP,QNLI,SST-2,CoLA,STS-B  # Table 2; its average is over these tasks
pos_enc='learned,shaw,t5,tupe,diet-rel,learned+linformer[slots=32],diet-abs-lin[slots=32]'  # Table 2, segments at the input
corpus=glue
papers='DIET/BERT-base, English'
set_flag report like paper-diet
pretraining='recipes/pretrain_mlm/run.sh --preset diet-english'

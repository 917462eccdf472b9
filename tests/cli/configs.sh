#!/usr/bin/env bash
# Configurations: keys of images, runs of older versions, what is refused.
set -eu
. "$(dirname "$0")/lib.bash"

# trains ARGUMENTS: must succeed; what it says on stderr is progress.
trains() { "$psld" train "$@" >"$logs/out" 2>"$logs/err" || fail "psld train $*: $(cat "$logs/err")"; }

cat >net.yaml <<'EOF'
process: psld gamma=0.02
data: {size: 8, channels: 1}
model: {name: ncsnpp, nf: 8, ch_mult: [1, 2], num_res_blocks: 1, attn_resolutions: [4]}
train: {batch: 4, steps: 2, warmup: 0, sample_every: 0, evaluate_every: 0}
EOF
sed 's/size: 8/size: 16/' net.yaml >net16.yaml
quietly convert net16.yaml net16.safetensors
quietly sample net16.safetensors -n 6 --sampler em --nfe 2 -o pictures

check "data.resample: another filter, other images; a run keeps to its own"
trains net.yaml --data pictures -o lanczos
grep -q 'resample: lanczos' lanczos/config.yaml || fail "data.resample is not in the run's configuration"
trains net.yaml --data pictures -o bilinear data.resample=bilinear
! cmp -s lanczos/model.safetensors bilinear/model.safetensors || fail "the filter changes nothing"
refuses 1 "data.resample is lanczos there and bilinear now" train -o lanczos data.resample=bilinear
refuses 1 "expected lanczos, bilinear, bicubic, box, nearest or bilinear_plain" train net.yaml --data pictures -o x \
    data.resample=cubic

check "eval says by which filter"
sed 's/name: ncsnpp,/name: ncsnpp_clf, n_cls: 2,/' net.yaml >judge.yaml
quietly convert judge.yaml judge.safetensors
for filter in lanczos box; do
    "$psld" eval pictures pictures --size 8 --resample $filter --weights judge.safetensors --json >"$logs/out" 2>/dev/null ||
        fail "eval --resample $filter"
    json ".brought_to == 8 and .resample == \"$filter\""
done
refuses 2 "expected lanczos|bilinear|bicubic|box|nearest|bilinear_plain" eval pictures pictures --resample cubic

check "a run of an older version, whose configuration lacks a key, continues"
sed -i '/resample:/d' lanczos/config.yaml
trains -o lanczos train.steps=3
grep -q 'resample: lanczos' lanczos/config.yaml || fail "the newer key was not added"

# ---- Published configurations ------------------------------------------------------------------------------------------

cat >theirs.yaml <<'EOF'
diffusion:
  data:
    root: ???
    name: "celeba64"
    image_size: 8
    hflip: True
    num_channels: 1
    norm: True
  model:
    pl_module: 'sde_wrapper'
    score_fn:
      name: "ncsnpp"
      in_ch: 3
      out_ch: 3
      nonlinearity: "swish"
      nf : 8
      ch_mult: [1,2,]
      num_res_blocks: 1
      attn_resolutions: [4,]
      dropout: 0.1
      fir: False
      fir_kernel: [1,3,3,1]
      progressive: "none"
      embedding_type: "positional"
      init_scale: 0.0
      fourier_scale: 16
      n_heads: 8
    sde: {name: "psld", beta_min: 8.0, beta_max: 8.0, nu: 1, gamma: 2, kappa: 0.04, decomp_mode: "lower",
          numerical_eps: 1e-9, n_timesteps: 1000, is_augmented: True}
  training:
    seed: 3
    continuous: True
    mode: 'hsm'
    loss: {name: "psld_score_loss", l_type: "l2", reduce_mean: True, weighting: "fid"}
    optimizer: {name: "Adam", lr: 1e-3, beta_1: 0.9, beta_2: 0.99, weight_decay: 0, eps: 1e-8, warmup: 2, grad_clip: 1.5}
    train_eps: 1e-4
    fp16: False
    use_ema: True
    ema_decay: 0.95
    batch_size: 4
    epochs: 3
    accelerator: "gpu"
    devices: [0]
    restore_path: ""
    results_dir: ???
    workers: 1
  evaluation:
    chkpt_path: ???
    n_samples: 50000
clf:
  data: {name: celeba64, image_size: 8, hflip: true, num_channels: 1, norm: true, return_target: true}
  model:
    pl_module: tclf_wrapper
    clf_fn:
      name: ncsnpp_clf
      in_ch: 6
      nf: 8
      ch_mult: [1,2]
      num_res_blocks: 1
      progressive: none
      n_cls: ???
  training:
    seed: 0
    loss: {name: tce_loss, l_type: l2, reduce_mean: true}
    optimizer: {name: Adam, lr: 0.0002, warmup: 5000}
    batch_size: 2
    epochs: 2
    devices: 2
EOF

check "info of a published configuration: channels follow from the process"
quietly info theirs.yaml
says "data 1 x 8 x 8, channels 2 in, 2 out"
sed 's/num_channels: 1/num_channels: 3/' theirs.yaml >colour.yaml
quietly info colour.yaml --json
json '.channels == [6, 6] and .shape == [3, 8, 8]'
sed 's/nu: 1, gamma: 2/nu: 4, gamma: 0/; s/out_ch: 3/out_ch: 6/' theirs.yaml >cld.yaml
quietly info cld.yaml
says "channels 2 in, 1 out"

check "a published configuration trains as it is, and as the same keys of ours do; one line names the ignored keys"
trains theirs.yaml --data pictures -o theirs
[ "$(grep -c 'ignored keys' "$logs/err")" -eq 1 ] || fail "not one notice: $(cat "$logs/err")"
for key in 'diffusion.data.root (???)' diffusion.model.pl_module diffusion.model.score_fn.n_heads \
    diffusion.model.sde.n_timesteps diffusion.training.devices diffusion.training.workers diffusion.evaluation clf; do
    grep 'ignored keys' "$logs/err" | grep -qF "$key" || fail "the notice lacks $key: $(cat "$logs/err")"
done
! grep 'ignored keys' "$logs/err" | grep -q 'train_eps\|grad_clip\|in_ch' || fail "heeded keys: $(cat "$logs/err")"
cat >ours.yaml <<'EOF'
process: psld gamma=2 nu=1
data: {size: 8, channels: 1, flip: true, held_out: 0, fit: stretch, resample: bilinear}
model: {name: ncsnpp, nf: 8, ch_mult: [1, 2], num_res_blocks: 1, attn_resolutions: [4], dropout: 0.1}
train: {loss: hsm, batch: 4, steps: 3, lr: 1e-3, warmup: 2, beta2: 0.99, clip: 1.5, ema: 0.95, ema_warmup: false,
        eps: 1e-4}
seed: 3
EOF
trains ours.yaml --data pictures -o ours
cut -d, -f1-4 theirs/log.jsonl >"$logs/a"
cut -d, -f1-4 ours/log.jsonl >"$logs/b"
cmp "$logs/a" "$logs/b" || fail "other losses: $(cat "$logs/a" "$logs/b")"
for key in 'ema: 0.95' 'ema_warmup: false' 'flip: ' 'fit: stretch' 'resample: bilinear' 'held_out: 0' 'steps: 3'; do
    grep -q "$key" theirs/config.yaml || fail "no $key in $(cat theirs/config.yaml)"
done
trains theirs.yaml --data pictures -o theirs train.steps=4
quietly sample theirs -n 2 --nfe 2 --sampler em -o x.npy

check "overrides by their names and by ours; a batch for several devices"
trains theirs.yaml -o named dataset.diffusion.training.batch_size=3 +dataset.diffusion.data.root=pictures train.steps=1
grep -q 'batch: 3' named/config.yaml || fail "batch_size was not heeded"
trains theirs.yaml --data pictures -o several diffusion.training.devices=2 diffusion.training.batch_size=2
grep -q 'batch: 4' several/config.yaml || fail "the batch is not that of two devices"

check "their classifier"
mkdir -p classes/a classes/b
i=0
for file in pictures/*.png; do
    i=$((i + 1))
    cp "$file" classes/"$([ $((i % 2)) -eq 0 ] && echo a || echo b)"/
done
trains theirs.yaml --classifier --data classes -o judge
for key in 'n_cls: 2' 'loss: cross_entropy' 'ema: 0' 'clip: 0' 'eps: 1e-4' 'batch: 4' 'steps: 2'; do
    grep -q "$key" judge/config.yaml || fail "no $key in $(cat judge/config.yaml)"
done

# refuses_after_notice TEXT ARGUMENTS: fails with the text in its last line.
refuses_after_notice() {
    local text=$1
    shift
    ! "$psld" "$@" >"$logs/out" 2>"$logs/err" || fail "psld $*: not refused"
    tail -n 1 "$logs/err" | grep -qF -- "$text" || fail "psld $*: no \"$text\" in: $(cat "$logs/err")"
}
refuses_after_notice "data.path is missing" train theirs.yaml -o x
refuses 1 "diffusion.training.continuous=false: expected true" train theirs.yaml --data pictures -o x \
    diffusion.training.continuous=false
refuses 1 'expected Adam or AdamW, found "SGD"' train theirs.yaml --data pictures -o x \
    diffusion.training.optimizer.name=SGD

# ---- Keys without effect -----------------------------------------------------------------------------------------------

check "keys of ours that have no effect are refused"
refuses 1 "model.n_cls=3: has no effect on score networks of images (ncsnpp)" train net.yaml --data pictures -o x \
    model.n_cls=3
sed 's/nf: 8/nf: 8, n_cls: 3/' net.yaml >n_cls.yaml
refuses 1 "n_cls.yaml:3: model.n_cls: has no effect on score networks of images (ncsnpp)" info n_cls.yaml
refuses 1 "model.n_cls: has no effect" convert n_cls.yaml x.safetensors
refuses 1 "model.ch_mult=[1, 2]: has no effect on score networks of vectors (mlp)" train toy:moons -o x \
    'model.ch_mult=[1, 2]'
refuses 1 "train.clean: has no effect on score networks" train net.yaml --data pictures -o x train.clean=true
refuses 1 "data.flip: has no effect on data that are no images" train toy:moons -o x data.flip=true

"""Weights in and out: a compact float16 archive, a checkpoint of this recipe, or a published ONNX file.

`python -m ppe.weights mixed.pt run1/last.pt:0.4 run2/last.pt:0.6` mixes the moving averages of runs that follow one another.
`--within heads.0 run2/last.pt:1` gives a part of the network shares of its own.
"""

import argparse

import numpy as np
import torch

from .model import ConvBnRelu


def save_compact(model, path):
    """All parameters and batch-norm statistics as float16 in one .npz (about 2.8 MB)."""
    np.savez_compressed(
        path, **{k: v.cpu().float().numpy().astype(np.float16) for k, v in model.state_dict().items() if v.ndim}
    )


def load_init(model, path):
    """Fills `model` from `path` (.npz, .pt or .onnx); unknown or missing names are an error.

    From .onnx the batch norms are the identity: call `restore_statistics` before training on.
    """
    path = str(path)
    if path.endswith(".npz"):
        state = {k: torch.from_numpy(v.astype(np.float32)) for k, v in np.load(path).items()}
        missing, unknown = model.load_state_dict(state, strict=False)
        missing = [m for m in missing if not m.endswith("num_batches_tracked")]
        if missing or unknown:
            raise SystemExit(f"{path} is of another network: missing {missing[:3]}, unknown {unknown[:3]}")
    elif path.endswith(".onnx"):
        load_onnx(model, path)
    else:
        state = torch.load(path, map_location="cpu", weights_only=True)
        model.load_state_dict(state["average"])


def load_onnx(model, path):
    """Reads the fused convolutions of an exported fp32 file back: batch norms become the identity plus the bias."""
    import onnx
    from onnx import numpy_helper

    arrays = {i.name: torch.from_numpy(numpy_helper.to_array(i).copy()) for i in onnx.load(path).graph.initializer}

    def of(name):
        try:
            return arrays[f"detector.{name}.weight"], arrays[f"detector.{name}.bias"]
        except KeyError as e:
            raise SystemExit(f"{path} is no fp32 export of this network: it has no {e}") from None

    with torch.no_grad():
        for name, module in model.named_modules():
            if isinstance(module, ConvBnRelu):
                weight, bias = of(name + ".0")
                module[0].weight.copy_(weight * 255.0 if name == "backbone.stem.0" else weight)
                bn = module[1]
                bn.running_mean.zero_(), bn.running_var.fill_(1.0 - bn.eps), bn.weight.fill_(1.0)
                bn.bias.copy_(bias)
            elif isinstance(module, torch.nn.Conv2d) and module.bias is not None:
                weight, bias = of(name)
                module.weight.copy_(weight * 255.0 if name == "backbone.context.stem" else weight), module.bias.copy_(bias)


@torch.no_grad()
def restore_statistics(model, images):
    """Gives identity batch norms their statistics back, without changing what the network computes in evaluation.

    A fused file has lost mean and variance, and training normalises by those of the batch: trained on as it is, the
    network starts far from what was loaded. Here each norm takes mean and variance of its convolution over `images`
    (float [N, 3, H, W], 0..1, as training sees them) and a scale and bias that undo them.
    """
    measured = {}

    def measure(norm, args):
        measured[norm] = torch.var_mean(args[0].float(), (0, 2, 3), correction=0)

    norms = [m[1] for m in model.modules() if isinstance(m, ConvBnRelu)]
    hooks = [norm.register_forward_pre_hook(measure) for norm in norms]
    was_training = model.training
    model.eval()(images)
    model.train(was_training)
    for norm, hook in zip(norms, hooks):
        hook.remove()
        var, mean = measured[norm]
        scale = norm.weight / (norm.running_var + norm.eps).sqrt()
        norm.bias.add_(scale * (mean - norm.running_mean))
        norm.weight.copy_(scale * (var + norm.eps).sqrt())
        norm.running_mean.copy_(mean), norm.running_var.copy_(var)


def mixed(parts, within=()):
    """The weighted mean of the moving averages of checkpoints, as a checkpoint that `load_init` reads.

    `parts`: (path, share), shares of 1 in all. `within`: (start of parameters' names, parts of their own) for parts of the network.
    Runs that continue one another lie in one basin, and a point between them generalises a little better than either (Wortsman et
    al., Model soups, ICML 2022).
    """
    named = [*within, ("", parts)]
    states = {}
    for prefix, some in named:
        total = sum(share for _, share in some)
        if abs(total - 1) > 1e-6:
            raise SystemExit(f"the shares{prefix and f' of {prefix}'} are {total:g} in all, and must be 1")
        for path, _ in some:
            states[path] = states.get(path) or torch.load(path, map_location="cpu", weights_only=True)["average"]
    first = states[parts[0][0]]
    shapes = {k: v.shape for k, v in first.items()}
    for path, state in states.items():
        if {k: v.shape for k, v in state.items()} != shapes:
            raise SystemExit(f"{path} is of another network than {parts[0][0]}")
    for prefix, _ in within:
        if not any(k.startswith(prefix) for k in first):
            raise SystemExit(f"no parameter begins with {prefix}")
    average = {}
    for k, v in first.items():
        some = next(some for prefix, some in named if k.startswith(prefix))
        average[k] = sum(share * states[path][k] for path, share in some) if v.is_floating_point() else v
    return {"average": average}


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("out", help="where the mixed checkpoint goes")
    p.add_argument("parts", nargs="+", help="RUN/last.pt:SHARE, shares of 1 in all")
    p.add_argument("--within", nargs="+", action="append", default=[], metavar=("PREFIX", "PART"), help="parts of their own for "
                   "parameters whose names begin so, such as heads.0")
    a = p.parse_args()

    def shares(texts):
        parts = []
        for text in texts:
            path, _, share = text.rpartition(":")
            try:
                parts.append((path, float(share)))
            except ValueError:
                p.error(f"{text!r} is not RUN/last.pt:SHARE")
        return parts

    torch.save(mixed(shares(a.parts), [(prefix, shares(texts)) for prefix, *texts in a.within]), a.out)


if __name__ == "__main__":
    main()

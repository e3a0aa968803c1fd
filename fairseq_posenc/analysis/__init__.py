"""Draw the figures of the papers. Each module has a function that returns a figure's data and one that draws them.

From a notebook:

    from fairseq_posenc.analysis import priors
    curves = priors.divergence(dim=512)
    priors.draw_divergence(curves)

`python -m fairseq_posenc figures` writes them as PNG, PDF and CSV. Drawing needs matplotlib; the data do not.
"""

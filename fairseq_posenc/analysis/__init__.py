"""Draw the figures of the papers: each module has a function that returns the data and a function that draws them.

From a notebook:

    from fairseq_posenc.analysis import divergence
    curves = divergence.data(dim=512)
    divergence.draw(curves)

`python -m fairseq_posenc figures` writes them as PNG, PDF and CSV. Drawing needs matplotlib; the data do not.
"""

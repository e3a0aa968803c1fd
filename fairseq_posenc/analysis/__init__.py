"""The figures of the papers: for each one a function that returns its data and one that draws them.

From a notebook:

    from fairseq_posenc.analysis import divergence
    curves = divergence.data(dim=512)
    divergence.draw(curves)

`python -m fairseq_posenc figures` writes them as PNG, PDF and CSV. Drawing needs matplotlib; the data do not.
"""

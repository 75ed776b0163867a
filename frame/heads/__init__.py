"""Disease heads on frozen features.

``logistic`` fits linear heads to the optimum of scikit-learn's objective, ``disease_heads`` the heads of a
finding (linear, or with a hidden layer), ``linear_maps`` what stands between features and coefficients, and
``capped_rows`` which rows a unit is fitted on.
"""

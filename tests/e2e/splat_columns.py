"""The columns of a PLY of Gaussians of SH degree 0, in INRIA's names."""
SPLAT_COLUMNS = ["x", "y", "z", "f_dc_0", "f_dc_1", "f_dc_2", "opacity", "scale_0", "scale_1", "scale_2",
                 "rot_0", "rot_1", "rot_2", "rot_3"]

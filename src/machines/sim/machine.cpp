// placeholder until written below

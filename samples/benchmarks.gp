# benchmarks.gp: draws the ratios in tables 1 and 3 of BENCHMARKS.md, column "MKL / qrtool" and "ratio QR".
# In the folder of the sources: gnuplot samples/benchmarks.gp > samples/benchmarks.svg
set terminal svg noenhanced size 980,520 dynamic background '#ffffff' font 'sans-serif,13'

# Prints a line for each shape of a table: the shape, its ratio in float32 and in float64.
ratios(table) = "< awk -F ' *[|] *' '" . \
  "/^## / { is_table = $0 ~ \"^## " . table . "[.]\" } " . \
  "is_table && $3 ~ /^float/ && $8 ~ /^[0-9.]+$/ { " . \
  "  shape = $2; sub(/^.* of /, \"\", shape); " . \
  "  if (!(shape in seen)) { seen[shape] = 1; shapes[++count] = shape } " . \
  "  ratio[shape, $3] = $8 } " . \
  "END { for (i = 1; i <= count; ++i) { s = shapes[i]; printf \"%s\", s; " . \
  "  for (bits = 32; bits <= 64; bits += 32) " . \
  "    printf \"\\t%s\", ((s, \"float\" bits) in ratio) ? ratio[s, \"float\" bits] : \"NaN\"; " . \
  "  print \"\" } }' BENCHMARKS.md"

set datafile separator "\t"
set datafile missing "NaN"
set multiplot layout 1,2 title "QR of batches of matrices: how many times as fast qrtool is"
set style data histograms
set style histogram clustered gap 1
set style fill solid 0.85 noborder
set grid y
set logscale y
set yrange [0.8:400]
set ytics (1, 2, 5, 10, 20, 50, 100, 200)
set xtics rotate by -45 nomirror
set bmargin 6
set key top left horizontal
set title "two CPU cores, against Intel MKL"
plot ratios("1") using 2:xtic(1) linecolor rgb '#2166ac' title "float32", \
     '' using 3 linecolor rgb '#92c5de' title "float64", 1 with lines linecolor black notitle
set title "one NVIDIA H200, against the better of PyTorch and JAX"
plot ratios("3") using 2:xtic(1) linecolor rgb '#b2182b' title "float32", \
     '' using 3 linecolor rgb '#f4a582' title "float64", 1 with lines linecolor black notitle
unset multiplot

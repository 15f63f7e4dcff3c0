# benchmarks.gp: how many times as long a script takes as qrtool, from file to file.
# tests/peers/pages.py wrote this file, and draws samples/benchmarks.svg with it.
set terminal svg noenhanced size 980,420 dynamic background '#ffffff' font 'sans-serif,13'
set datafile separator "\t"
$cpu << EOD
"5,000 x 5,000, float64"	1.38	1.38
"5,000 x 5,000, float32"	1.74	1.74
"2,000 x 2,000, float64"	1.54	1.54
"2,000 x 2,000, float32"	2.05	2.05
"20,000 of 64 x 64, float64"	5.28	5.28
"20,000 of 64 x 64, float32"	8.89	8.89
EOD
$gpu << EOD
"200 of 2,000 x 2,000, float32"	4.86	>4.86
"4 of 4,096 x 4,096, float32"	10.6	10.6
"150,000 of 64 x 64, float64"	4.14	>4.14
"150,000 of 64 x 64, float32"	7.5	>7.5
"1,000,000 x 128, float64, R alone"	2.43	2.43
"1,000,000 x 128, float32"	2.91	2.91
"1,000,000 x 128, float64"	3.09	3.09
"5,000 x 5,000, float32"	2.33	2.33
"5,000 x 5,000, float64"	2.27	2.27
"12,000 x 12,000, float64"	2.34	2.34
EOD
$one << EOD
1	-0.6
1	20
EOD
set multiplot layout 1,2 title "From file to file: time of a script / time of qrtool \
(1: equally fast; qrtool checks every matrix, scripts do not)"
set style fill solid 0.9 noborder
set xrange [0:*]
set ytics nomirror
set xtics nomirror
set border 3
set lmargin 26
set rmargin 8
set title "2 cores of Intel(R) Xeon(R) Processor\nagainst h5py + NumPy"
set yrange [-0.6:5.6]
plot $cpu using (0):0:(0):2:($0 - 0.35):($0 + 0.35):ytic(1) with boxxyerror \
     linecolor rgb '#2166ac' notitle, \
     '' using 2:0:3 with labels left offset 0.6,0 notitle, \
     $one using 1:2 with lines linecolor black notitle
set title "NVIDIA H100 80GB HBM3\nagainst PyTorch or NumPy"
set yrange [-0.6:9.6]
plot $gpu using (0):0:(0):2:($0 - 0.35):($0 + 0.35):ytic(1) with boxxyerror \
     linecolor rgb '#d6604d' notitle, \
     '' using 2:0:3 with labels left offset 0.6,0 notitle, \
     $one using 1:2 with lines linecolor black notitle
unset multiplot

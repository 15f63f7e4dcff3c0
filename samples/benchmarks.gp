# benchmarks.gp: how many times as long a script takes as qrtool, from file to file.
# tests/peers/pages.py wrote this file, and draws samples/benchmarks.svg with it.
set terminal svg noenhanced size 980,420 dynamic background '#ffffff' font 'sans-serif,13'
set datafile separator "\t"
$cpu << EOD
"one of 5000 x 5000, float64"	1.5	1.5
"one of 5000 x 5000, float32"	1.8	1.8
"one of 2000 x 2000, float64"	1.7	1.7
"one of 2000 x 2000, float32"	2.7	2.7
"20,000 of 64 x 64, float32"	5.4	5.4
EOD
$gpu << EOD
"200 of 2000 x 2000, float32"	4.8	>4.8
"4 of 4096 x 4096, float32"	7.87	7.87
"150000 of 64 x 64, float64"	6.25	>6.25
"150000 of 64 x 64, float32"	10.9	>10.9
"one 1000000 x 128, float64, R alone"	1.95	1.95
"one 1000000 x 128, float32"	3.22	3.22
"one 1000000 x 128, float64"	2.65	2.65
"one 5000 x 5000, float32"	2.24	2.24
"one 5000 x 5000, float64"	1.86	1.86
"one 12000 x 12000, float64"	2.68	2.68
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
set title "two cores of an Intel Xeon\nagainst h5py + NumPy"
set yrange [-0.6:4.6]
plot $cpu using (0):0:(0):2:($0 - 0.35):($0 + 0.35):ytic(1) with boxxyerror \
     linecolor rgb '#2166ac' notitle, \
     '' using 2:0:3 with labels left offset 0.6,0 notitle, \
     $one using 1:2 with lines linecolor black notitle
set title "one NVIDIA H100\nagainst PyTorch or NumPy"
set yrange [-0.6:9.6]
plot $gpu using (0):0:(0):2:($0 - 0.35):($0 + 0.35):ytic(1) with boxxyerror \
     linecolor rgb '#d6604d' notitle, \
     '' using 2:0:3 with labels left offset 0.6,0 notitle, \
     $one using 1:2 with lines linecolor black notitle
unset multiplot

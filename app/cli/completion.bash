# SPDX-License-Identifier: Apache-2.0
# completion.bash: commands, options, their values and files of qrtool, for bash.

_qrtool() {
  local current="${COMP_WORDS[COMP_CWORD]}" previous="${COMP_WORDS[COMP_CWORD - 1]}" command="" word
  for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case "$word" in factor | solve | verify | generate | devices | bench | help) command="$word" && break ;; esac
  done

  local input="--dataset --order --delimiter --decimal --skip-rows --header --columns --index-column --na-text"
  local resources="--memory --threads"
  local print="--report --force --json --quiet --verbose --progress"
  local system="--response --intercept --weights --rows --missing --ridge --rank-tolerance"
  local options="" values=""
  case "$command" in
    factor) options="--mode --sign --precision --arithmetic --check $input --backend --device --variant $resources --scratch --explain $print" ;;
    solve) options="$system --basic --no-se --precision ${input#--dataset } --backend --device --variant $resources --force --json --quiet --verbose --progress" ;;
    verify) options="--criteria --check --all $system $input $resources $print" ;;
    generate) options="--shape --kind --precision --cond --seed --special --force --quiet" ;;
    devices) options="--shape --precision --json" ;;
    bench)
      options="--sweep --quick --gemm --shape --batch --precision --arithmetic --mode --against --limit-seconds --seed"
      options+=" --backend --device --variant $resources --export-json --export-csv --export-markdown"
      options+=" --force --json --quiet"
      ;;
  esac
  case "$previous" in
    --mode) [[ "$command" == bench ]] && values="reduced r" || values="reduced complete r raw" ;;
    --sweep) values="standard tall" ;;
    --against) values="eigen lapack textbook none" ;;
    --sign) values="positive lapack" ;;
    --precision)
      case "$command" in
        factor) values="input single double mixed" ;;
        solve) values="input single double" ;;
        *) values="single double" ;;
      esac
      ;;
    --arithmetic) [[ "$command" == bench ]] && values="any strict mixed" || values="any strict" ;;
    --delimiter) values="comma semicolon tab space pipe" ;;
    --decimal) values="auto point comma" ;;
    --header | --index-column) values="auto yes no" ;;
    --order) values="auto row column" ;;
    --backend) values="auto cpu opencl" ;;
    --rows) values="auto first last matrix" ;;
    --missing) values="error skip" ;;
    --criteria) values="bar m-eps" ;;
    --check) [[ "$command" == verify ]] && values="full probe" || values="full probe none" ;;
    --progress) values="auto always never" ;;
    --kind) values="$(qrtool help generate 2>/dev/null |
      sed -n '/^  --kind/,/^  --precision/{s/.*default gauss;//;/--precision/d;s/,//g;p}')" ;;
    --response | --ridge | --rank-tolerance) return ;;
    --dataset | --skip-rows | --columns | --na-text | --memory | --scratch | --threads | --device | --variant | --shape | --cond | --seed | --batch | --limit-seconds) return ;;
  esac

  if [[ -n "$values" ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$values" -- "$current")
  elif [[ -z "$command" ]]; then
    mapfile -t COMPREPLY < <(compgen -W "factor solve verify generate devices bench help --help --version" -- "$current")
  elif [[ "$command" == help ]]; then
    mapfile -t COMPREPLY < <(compgen -W "factor solve verify generate devices bench" -- "$current")
  elif [[ "$current" == -* ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$options --help" -- "$current")
  else
    compopt -o filenames 2>/dev/null
    mapfile -t COMPREPLY < <(compgen -f -- "$current")
  fi
}
complete -F _qrtool qrtool

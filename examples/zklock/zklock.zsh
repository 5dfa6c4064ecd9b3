#compdef zklock
# Completion of zklock for zsh. Commands and options are those of `zklock --help`, paths those of nodes, if the servers
# answer at once.

# _zklock_help COMMAND...: what `zklock COMMAND --help` lists, as lines of "option" or "command", name, value and
# description with tabs between.
_zklock_help() {
    "$program" "$@" --help 2> /dev/null < /dev/null | awk '
        function put(    each, n, i) {
            n = split(names, each, ",")
            for (i = 1; i <= n; i++) print kind "\t" each[i] "\t" value "\t" text
            names = ""
        }
        /^[^ ]/ { put(); section = tolower($1); next }
        /^ *-/ || (section == "subcommands:" && /^  [a-z]/) {
            put()
            names = $1
            kind = names ~ /^-/ ? "option" : "command"
            rest = substr($0, index($0, $1) + length($1))
            value = ""
            if (rest ~ /^ [^ ]/) {
                value = substr(rest, 2)
                rest = ""
                if (match(value, /   */)) {
                    rest = substr(value, RSTART)
                    value = substr(value, 1, RSTART - 1)
                }
            }
            sub(/^ +/, "", rest)
            text = rest
            next
        }
        names != "" && text == "" && /^            / { text = $0; sub(/^ +/, "", text) }
        END { put() }'
}

# _zklock_value OPTION: sets `value` to what follows that option; fails if nothing does.
_zklock_value() {
    local line name=$1
    [[ $name == --* || $name == -? ]] || name=-$name[-1]  # -vw: the last one
    for line in $lines; do
        value=${${(ps:\t:)line}[3]}
        [[ $line == (#b)option$'\t'$name$'\t'([^$'\t']#)$'\t'* ]] && { value=$match[1]; [[ -n $value ]]; return }
    done
    return 1
}

# _zklock_describe KIND
_zklock_describe() {
    local line
    local -a found parts
    for line in $lines; do
        parts=("${(@ps:\t:)line}")
        [[ $parts[1] == $1 && ($1 == command || $parts[2] == --*) ]] && found+=("${parts[2]//:/\\:}:$parts[4]")
    done
    if [[ $1 == option ]]; then
        _describe -o option found
    else
        _describe command found
    fi
}

_zklock_nodes() {
    local word=${(Q)words[CURRENT]} parent
    local -a names
    parent=${word%/*}
    names=(${(f)"$("$program" ls --connect-timeout 500ms $servers "${parent:-/}" 2> /dev/null < /dev/null)"})
    compadd -S '' -- "${parent%/}/"${^names}
}

# _zklock_command N: a command to run, and its arguments, begin with that word.
_zklock_command() {
    words=("${(@)words[$1,-1]}")
    ((CURRENT -= $1 - 1))
    _normal
}

_zklock() {
    setopt localoptions extendedglob
    local program=${(Q)words[1]} verb= action= node= value i word
    local -a servers lines match mbegin mend
    lines=(${(f)"$(_zklock_help)"})
    for ((i = 2; i < CURRENT; i++)); do
        word=$words[i]
        if [[ $word == -- && $verb == (run|elect) ]]; then
            _zklock_command $((i + 1))
            return
        elif [[ $word == -* ]]; then
            [[ $word == *=* ]] && continue
            [[ $word == --connect ]] && servers=(--connect "${(Q)words[i + 1]}")
            if _zklock_value $word; then
                ((++i < CURRENT)) && continue
                case $word:$value in
                    *'|'*) compadd -- ${(s:|:)${value%%[= ]*}} ;;
                    --mode:*) compadd -- persistent sequential container ttl sequential-ttl ;;
                    (--acl|--set):*) compadd -- open creator read-only ;;
                    (--auth-file|--sasl-password-file|--tls-ca|--tls-cert|--tls-key|--file|-f):*) _files ;;
                    --lock-path:*) _zklock_nodes ;;
                    *) _message "${value%%[= :]*}" ;;
                esac
                return
            fi
        elif [[ -z $verb ]]; then
            verb=$word
            lines=(${lines:#command$'\t'*} ${(f)"$(_zklock_help $verb)"})
        elif [[ -z $action && -n ${(M)lines:#command$'\t'*} ]]; then
            action=$word
            lines=(${lines:#command$'\t'*} ${(f)"$(_zklock_help $verb $action)"})
        elif [[ -z $node ]]; then
            node=$word
        elif [[ $verb == (run|elect) ]]; then
            _zklock_command $i
            return
        fi
    done
    if [[ $words[CURRENT] == -* ]]; then
        _zklock_describe option
    elif [[ -n ${(M)lines:#command$'\t'*} ]]; then
        _zklock_describe command
    elif [[ $verb == (run|elect) && -n $node ]]; then
        _zklock_command $CURRENT
    else
        _zklock_nodes
    fi
}

_zklock "$@"

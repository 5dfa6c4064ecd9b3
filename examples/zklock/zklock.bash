# Completion of zklock for bash. Paths are those of nodes, if the servers answer at once.

_zklock_paths() {
    local word=$1 parent name
    parent=${word%/*}
    while IFS= read -r name; do
        COMPREPLY+=("${parent%/}/$name")
    done < <("${COMP_WORDS[0]}" ls --connect-timeout 500ms "${servers[@]}" "${parent:-/}" 2> /dev/null < /dev/null)
    local i
    for i in "${!COMPREPLY[@]}"; do
        [[ ${COMPREPLY[i]} == "$word"* ]] || unset "COMPREPLY[i]"
    done
    COMPREPLY=("${COMPREPLY[@]}")
    compopt -o nospace 2> /dev/null
}

# _zklock_command WORD: a command to run, and its arguments, begin with the word of that number.
_zklock_command() {
    if declare -F _command_offset > /dev/null; then
        _command_offset "$1"
    else
        mapfile -t COMPREPLY < <(compgen -c -f -- "${COMP_WORDS[COMP_CWORD]}")
    fi
}

_zklock() {
    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} verb='' action='' path='' i servers=()
    local common='--connect --session-timeout --connect-timeout --auth-file --sasl-user --sasl-password-file --kerberos --tls-ca --tls-cert --tls-key --read-only --color --verbose --help --version'
    local verbs='run elect locks break revoke get set create rm ls stat acl watch tree whoami barrier counter queue doctor cost bench'
    local supervision='--on-loss --on-revoke --grace --acl --data --command --close'
    COMPREPLY=()
    for ((i = 1; i < COMP_CWORD; i++)); do
        case ${COMP_WORDS[i]} in
            --) _zklock_command $((i + 1)); return ;;
            --connect) servers=(--connect "${COMP_WORDS[i + 1]}"); i=$((i + 1)) ;;
            --session-timeout | --connect-timeout | --auth-file | --sasl-user | --sasl-password-file | --tls-ca | --tls-cert | --tls-key | --color | --wait | --timeout | -w | --semaphore | \
                --on-loss | --on-revoke | --grace | --acl | --data | --command | -c | --conflict-exit-code | -E) i=$((i + 1)) ;;
            -*) ;;
            *)
                if [ -z "$verb" ]; then
                    verb=${COMP_WORDS[i]}
                elif [[ -z $action && $verb == @(barrier|counter|queue) ]]; then
                    action=${COMP_WORDS[i]}
                elif [ -z "$path" ]; then
                    path=${COMP_WORDS[i]}
                elif [[ $verb == run || $verb == elect ]]; then
                    _zklock_command "$i"
                    return
                fi ;;
        esac
    done
    case $prev in
        --on-loss) mapfile -t COMPREPLY < <(compgen -W 'kill term warn' -- "$cur"); return ;;
        --on-revoke) mapfile -t COMPREPLY < <(compgen -W 'term kill ignore' -- "$cur"); return ;;
        --color) mapfile -t COMPREPLY < <(compgen -W 'auto always never' -- "$cur"); return ;;
        --mode) mapfile -t COMPREPLY < <(compgen -W 'persistent sequential container ttl sequential-ttl' -- "$cur")
            return ;;
        --layout) mapfile -t COMPREPLY < <(compgen -W 'kazoo-locking kazoo curator curator-priority curator-delay
            curator-id curator-simple' -- "$cur"); return ;;
        --acl | --set) mapfile -t COMPREPLY < <(compgen -W 'open creator read-only' -- "$cur"); return ;;
        --auth-file | --sasl-password-file | --tls-ca | --tls-cert | --tls-key | --file | -f) mapfile -t COMPREPLY < <(compgen -f -- "$cur"); return ;;
        --connect | --session-timeout | --connect-timeout | --sasl-user | --wait | --timeout | -w | --command | -c | --grace | \
            --semaphore | --conflict-exit-code | -E | --data | --node | --ttl | --version | --depth | --stuck | \
            --clients | --duration) return ;;
        --count) [ "$verb" = tree ] || return ;;
    esac
    if [ -z "$verb" ]; then
        mapfile -t COMPREPLY < <(compgen -W "$verbs $common" -- "$cur")
        return
    fi
    if [[ ($verb == run || $verb == elect) && -n $path && $cur != -* ]]; then
        _zklock_command "$COMP_CWORD"
        return
    fi
    if [[ -z $action && $verb == @(barrier|counter|queue) ]]; then
        case $verb in
            barrier) verbs='set remove wait' ;;
            counter) verbs='get add' ;;
            queue) verbs='ls put dead revive' ;;
        esac
        mapfile -t COMPREPLY < <(compgen -W "$verbs $common" -- "$cur")
        return
    fi
    if [[ $cur == /* ]]; then
        _zklock_paths "$cur"
        return
    fi
    local own=
    case $verb in
        run) own="--exclusive --shared --semaphore --wait --timeout --no-wait --nonblock --nb --conflict-exit-code
            --kazoo $supervision --" ;;
        elect) own="--requeue $supervision --" ;;
        locks) own='--recursive --json --watch' ;;
        break) own='--node --yes' ;;
        revoke) own='--node --keep-data' ;;
        get | stat | whoami | cost) own='--json' ;;
        ls) own='--long --json' ;;
        watch) own='--count --recursive' ;;
        tree) own='--depth --count' ;;
        set) own='--file --version' ;;
        create) own='--file --mode --ttl --parents --acl' ;;
        rm) own='--recursive --yes --version' ;;
        acl) own='--set' ;;
        barrier)
            case $action in
                set) own='--acl' ;;
                wait) own='--wait' ;;
            esac
            ;;
        counter)
            own='--kazoo'
            [ "$action" != add ] || own+=' --acl'
            ;;
        queue) own='--json --file --priority --delay --all --layout --lock-path --id --acl' ;;
        doctor) own='--json --stuck' ;;
        bench) own='--clients --duration --json' ;;
    esac
    mapfile -t COMPREPLY < <(compgen -W "$own $common" -- "$cur")
}

complete -F _zklock zklock

# Completion of zklock for fish. Commands and options are those of `zklock --help`, paths those of nodes, if the servers
# answer at once.

# __zklock_help PROGRAM COMMAND...: what `zklock COMMAND --help` lists, as lines of "option" or "command", name, value
# and description with tabs between.
function __zklock_help
    $argv --help 2> /dev/null < /dev/null | awk '
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
end

# __zklock_value OPTION LINE...: what follows that option; fails if nothing does.
function __zklock_value
    set -l name $argv[1]
    string match -qr -- '^(--|-.$)' $name; or set name -(string sub -s -1 -- $name)  # -vw: the last one
    for line in $argv[2..-1]
        set -l parts (string split \t -- $line)
        if test "$parts[1] $parts[2]" = "option $name"
            echo $parts[3]
            test -n "$parts[3]"
            return
        end
    end
    return 1
end

function __zklock_nodes # PROGRAM WORD SERVERS...
    set -l parent (string replace -r '/[^/]*$' '' -- $argv[2])
    set -l from $parent
    test -n "$from"; or set from /
    for name in ($argv[1] ls --connect-timeout 500ms $argv[3..-1] $from 2> /dev/null < /dev/null)
        echo $parent/$name
    end
end

function __zklock_complete
    set -l tokens (commandline -opc)
    set -l current (commandline -ct)
    set -l program $tokens[1]
    set -l lines (__zklock_help $program)
    set -l verb
    set -l action
    set -l node
    set -l servers
    set -l i 2
    while test $i -le (count $tokens)
        set -l word $tokens[$i]
        set -l runs (contains -- "$verb" run elect; and echo yes)
        if test "$word" = --; and test -n "$runs"
            complete -C (string join ' ' -- (string escape -- $tokens[(math $i + 1)..-1]) $current)
            return
        else if string match -q -- '-*' $word
            test "$word" = --connect; and set servers --connect $tokens[(math $i + 1)]
            set -l value (__zklock_value $word $lines)
            if test $status -eq 0
                if test $i -eq (count $tokens)
                    __zklock_choices $program $word $value $current $servers
                    return
                end
                set i (math $i + 1)
            end
        else if test -z "$verb"
            set verb $word
            set lines (string match -v -- 'command*' $lines) (__zklock_help $program $verb)
        else if test -z "$action"; and string match -q -- 'command*' $lines
            set action $word
            set lines (string match -v -- 'command*' $lines) (__zklock_help $program $verb $action)
        else if test -z "$node"
            set node $word
        else if test -n "$runs"
            complete -C (string join ' ' -- (string escape -- $tokens[$i..-1]) $current)
            return
        end
        set i (math $i + 1)
    end
    if string match -q -- '-*' $current
        string match -- 'option'\t'--*' $lines | string replace -r '^option\t([^\t]*)\t[^\t]*\t' '$1\t'
    else if string match -q -- 'command*' $lines
        string match -- 'command*' $lines | string replace -r '^command\t([^\t]*)\t[^\t]*\t' '$1\t'
    else if contains -- "$verb" run elect; and test -n "$node"
        complete -C (test -n "$current"; and echo $current; or echo '')
    else
        __zklock_nodes $program "$current" $servers
    end
end

function __zklock_choices # PROGRAM OPTION VALUE WORD SERVERS...
    switch "$argv[2]:$argv[3]"
        case '*|*'
            string replace -r '[= ].*' '' -- $argv[3] | string split '|'
        case '--mode:*'
            printf '%s\n' persistent sequential container ttl sequential-ttl
        case '--acl:*' '--set:*'
            printf '%s\n' open creator read-only
        case '--auth-file:*' '--sasl-password-file:*' '--tls-ca:*' '--tls-cert:*' '--tls-key:*' '--file:*' '-f:*'
            __fish_complete_path $argv[4]
        case '--lock-path:*'
            __zklock_nodes $argv[1] "$argv[4]" $argv[5..-1]
    end
end

complete -c zklock -f -a '(__zklock_complete)'

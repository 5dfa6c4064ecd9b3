#!/usr/bin/env bash
# Becomes the KDC of a throw-away Kerberos realm, ZKASIO.TEST, on a port of the loopback: DIR gets its configuration,
# database and log, and the process is the KDC.
#
#   kerberos_realm.sh DIR PORT
#   kerberos_realm.sh --missing    # prints the name of a program that it does not find; nothing: all are there
#
# Its users: alice, whose password is "wonder". Its service: zookeeper/localhost, whose key is in DIR/keytab. Programs
# use the realm with KRB5_CONFIG=DIR/krb5.conf in their environment, and KRB5CCNAME=FILE:DIR/tickets keeps its tickets
# apart. It answers when a connection to the port is accepted.
set -euo pipefail
PATH=$PATH:/usr/sbin:/sbin

if [ "$1" = --missing ]; then
    for program in krb5kdc kadmin.local kdb5_util kinit; do
        command -v "$program" > /dev/null || { echo "$program"; break; }
    done
    exit 0
fi

dir=$1 port=$2
cat > "$dir/krb5.conf" <<END
[libdefaults]
 default_realm = ZKASIO.TEST
 dns_lookup_kdc = false
 dns_lookup_realm = false
 rdns = false
 dns_canonicalize_hostname = false
 udp_preference_limit = 1
 ticket_lifetime = 1h
 clockskew = 5
[realms]
 ZKASIO.TEST = {
  kdc = 127.0.0.1:$port
 }
END
cat > "$dir/kdc.conf" <<END
[kdcdefaults]
 kdc_listen = 127.0.0.1:$port
 kdc_tcp_listen = 127.0.0.1:$port
[realms]
 ZKASIO.TEST = {
  database_name = $dir/db
  key_stash_file = $dir/stash
  acl_file = $dir/acl
  supported_enctypes = aes256-cts:normal
 }
[logging]
 kdc = FILE:$dir/kdc.log
END
export KRB5_CONFIG=$dir/krb5.conf KRB5_KDC_PROFILE=$dir/kdc.conf
{
    kdb5_util create -s -r ZKASIO.TEST -P master
    kadmin.local -q "addprinc -pw wonder alice"
    kadmin.local -q "addprinc -randkey zookeeper/localhost"
    kadmin.local -q "ktadd -k $dir/keytab zookeeper/localhost"
} > "$dir/log" 2>&1
exec krb5kdc -n -r ZKASIO.TEST -P "$dir/kdc.pid" >> "$dir/log" 2>&1

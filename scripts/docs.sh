#!/usr/bin/env bash
# Builds the site, the guide and the API reference, and checks every link in it. Without network.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
# shellcheck source=scripts/common.sh
. "$root/scripts/common.sh"

usage() {
    cat << USAGE
usage: scripts/docs.sh [--serve] [--no-install] [--into DIR]
       scripts/docs.sh --code

  --serve       show it afterwards, on http://127.0.0.1:8000/, until Ctrl-C
  --no-install  install no packages, with apt, that are missing
  --into DIR    build/site, unless told otherwise; what is there goes
  --code        copy the code of the pages and of README.md from the examples, and build nothing
USAGE
}

serve= install=1 site=$root/build/site
while [ $# -gt 0 ]; do
    case $1 in
        --serve) serve=1 ;;
        --no-install) install= ;;
        --into) site=$(realpath -m -- "${2:?--into needs DIR}"); shift ;;
        --code) exec python3 "$root/scripts/docs/snippets.py" ;;
        -h | --help) usage; exit ;;
        *) usage_error "unknown option $1" ;;
    esac
    shift
done

packages=("${docs_packages[@]}")
[ -z "$install" ] || install_packages

say "the API reference"
cd "$root"
(cat docs/Doxyfile; echo "OUTPUT_DIRECTORY = $work"; echo "GENERATE_TAGFILE = $work/api.tags") | doxygen - ||
    die "the headers' contracts: see above"
# The way back from there.
sed -i 's|<div id="projectname">zkasio|<div id="projectname"><a href="../reference.html">zkasio</a>|' "$work"/api/*.html
say "the pages"
/usr/bin/python3 scripts/docs/pictures.py --check docs/pictures
/usr/bin/python3 scripts/docs/pages.py "$work/api.tags" "$work/docs"
mv "$work/api" "$work/docs/pages/api"
mkdir -p "$(dirname "$site")"
PYTHONWARNINGS=ignore /usr/bin/mkdocs build --strict --config-file "$work/docs/mkdocs.yml" --site-dir "$site" \
    > "$work/mkdocs.log" 2>&1 ||
    { grep -v '^INFO' "$work/mkdocs.log" >&2; die "mkdocs does not take the pages"; }
say "the links"
/usr/bin/python3 scripts/docs/check_links.py "$site"
echo "   $site/index.html"
[ -z "$serve" ] || /usr/bin/python3 -m http.server --bind 127.0.0.1 --directory "$site" 8000

#!/bin/sh
# Installs the command coapace of the newest release, or of $COAPACE_VERSION, into $COAPACE_HOME (default: ~/.local/bin), and its playground
# into share/coapace beside that folder if it is called bin, or else in it.
#     curl --proto '=https' --tlsv1.2 -LsSf https://github.com/coapace/coapace/releases/latest/download/coapace-installer.sh | sh
# COAPACE_DOWNLOAD names another place for archives, such as a mirror or file:///folder.
set -eu

fail() {
    printf 'coapace-installer: %s\n' "$*" >&2
    exit 1
}

case "$(uname -s) $(uname -m)" in
"Linux x86_64") target=x86_64-unknown-linux-gnu ;;
"Linux aarch64") target=aarch64-unknown-linux-gnu ;;
"Linux armv7l") target=armv7-unknown-linux-gnueabihf ;;
"Darwin arm64") target=aarch64-apple-darwin ;;
"Darwin x86_64") target=x86_64-apple-darwin ;;
*) fail "there is no archive for $(uname -s) on $(uname -m); cargo install coapace compiles the command" ;;
esac
releases=https://github.com/coapace/coapace/releases
if [ -n "${COAPACE_VERSION-}" ]; then from=$releases/download/v$COAPACE_VERSION; else from=$releases/latest/download; fi
from=${COAPACE_DOWNLOAD:-$from}
archive=coapace-$target.tar.gz
home=${COAPACE_HOME:-$HOME/.local/bin}

# It may be relative to the folder of the caller.
mkdir -p "$home"
home=$(cd "$home" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for file in "$archive" "$archive.sha256"; do
    curl --silent --show-error --fail --location --output "$work/$file" "$from/$file" || fail "$from/$file cannot be downloaded"
done
cd "$work"
if command -v sha256sum >/dev/null; then check="sha256sum --check --status"; else check="shasum -a 256 --check --status"; fi
$check "$archive.sha256" || fail "$archive does not have the checksum of its release"
tar -xzf "$archive"
# A running command keeps its file: the new one takes its place.
cp "coapace-$target/coapace" "$home/.coapace.new"
mv "$home/.coapace.new" "$home/coapace"
# Where the command looks for its playground.
case "$home" in */bin) share=${home%/bin}/share ;; *) share=$home/share ;; esac
mkdir -p "$share/coapace"
rm -rf "$share/coapace/playground"
cp -r "coapace-$target/share/coapace/playground" "$share/coapace/playground"
printf '%s is %s\n' "$home/coapace" "$("$home/coapace" --version)"
case ":$PATH:" in *":$home:"*) ;; *) printf 'Add %s to PATH.\n' "$home" ;; esac

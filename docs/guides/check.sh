# Checks an export of a Rulekeep log with nothing but jq (1.6 or later), sha256sum and a shell.
#
#   sh check.sh export.jsonl
#
# Prints how many records hold and the hash of the last one, or stops at the first line that does not hold.
set -eu
export=$1
checked=$(mktemp -d)
trap 'rm -rf "$checked"' EXIT

# A field that stands twice in a line: readers differ in which of the two they take. Events name the path of each value,
# and of the last value in each object and list when it ends.
jq -n --stream '
  foreach inputs as $event ({line: 1};
    (if ($event | length) == 2 then $event[0] else $event[0][:-1] end) as $path | ($path | tojson) as $key
    | if $path == [] then {line: (.line + 1)}
      elif .seen[$key] then error("line \(.line): the field \($path | join(".")) occurs twice")
      else .seen[$key] = true end;
    empty)
' "$export"

# The chain, in one pass: each record names the hash of the one before it, and the last line says how many there are.
# Output: "=" starts a file and names the hash it must have, "t" is text in it, "b" bytes.
jq -nr '
  def byte: "\\\(. / 64 | floor)\(. / 8 | floor % 8)\(. % 8)";
  def bytes: map(byte) | add;
  def unhex: [explode[] | if . > 96 then . - 87 else . - 48 end] | [range(0; length; 2) as $i | .[$i] * 16 + .[$i + 1]] | bytes;
  def size: utf8bytelength | [. % 256, (. / 256 | floor % 256), (. / 65536 | floor % 256), (. / 16777216 | floor)] | bytes;
  def digits: if test("^sha256:[0-9a-f]{64}$") then .[7:71] else error("\(.) is no hash") end;
  def expect($what; $wanted; $found):
    if $wanted == $found then . else error("line \(.line): expected \($what) \($wanted), found \($found)") end;

  foreach inputs as $line ({line: 0, records: 0, evidence: 0};
    .line += 1
    | if .line == 1 then
        expect("manifest"; "start"; $line.manifest) | .head = $line.previousHash | .linked = (.head != null)
      elif .ended then error("line \(.line): expected nothing behind the end")
      elif $line.record then
        (if .linked then expect("previousHash"; .head; $line.record.previousHash) else . end)
        | .head = $line.record.hash | .records += 1 | .evidence += (if $line.evidence then 1 else 0 end)
      elif $line.entry then .
      else
        expect("manifest"; "end"; $line.manifest) | expect("records"; .records; $line.records)
        | (if .head then expect("headHash"; .head; $line.headHash) else . end) | .ended = true
      end;

    if $line.record then
      "=\(.line).record \($line.record.hash | digits)",
      "t\($line.record | del(.hash, .outcome) | to_entries | sort_by(.key) | from_entries | tojson)",
      (.line as $number | $line.evidence | select(.)
        | "=\($number).evidence \($line.record.evidenceHash | digits)", "b\(.salt | unhex)",
          (.parts[] | if contains("\n") then error("line \($number): a part of several lines") else "b\(size)", "t\(.)" end))
    elif .ended then "#\(.records) records, \(.evidence) with evidence, up to \(.head)"
    else empty end)
' "$export" > "$checked/items"

# One file for each hash.
while IFS= read -r item; do
  rest=${item#?}
  case $item in
    =*) exec 4> "$checked/${rest%% *}"; printf '%s  %s\n' "${rest#* }" "${rest%% *}" >&3 ;;
    t*) printf '%s' "$rest" >&4 ;;
    b*) printf "$rest" >&4 ;;
    '#'*) printf '%s\n' "$rest" ;;
  esac
done < "$checked/items" 3> "$checked/sums"
test ! -s "$checked/sums" || (cd "$checked" && sha256sum --check --strict --quiet sums)

# The file as a whole, which also covers the outcomes.
whole=$(sed '$d' "$export" | sha256sum)
stated=$(tail -n 1 "$export" | jq -r '.sha256')
test "$stated" = "sha256:${whole%% *}" || { echo "the lines have not the sha256 that the last one states" >&2; exit 1; }
echo "all of it holds"

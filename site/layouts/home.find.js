{{- /* SPDX-License-Identifier: Apache-2.0 */ -}}
{{- /* What the search reads: each section of each page, with its address, page, heading and text. */ -}}
{{- $sections := slice }}
{{- range site.Pages }}
{{- if .File }}
{{- $title := partial "title.html" . }}
{{- $address := strings.TrimPrefix "/" .RelPermalink }}
{{- range $i, $part := split (replaceRE `<h3 ` `<h2 ` .Content) `<h2 ` }}
{{- $heading := "" }}{{ $id := "" }}
{{- if $i }}
{{- with findRESubmatch `(?s)^id="([^"]*)"[^>]*>(.*?) <a class="anchor"` $part 1 }}{{ $id = index . 0 1 }}{{ $heading = index . 0 2 | plainify | htmlUnescape }}{{ end }}
{{- $part = replaceRE `(?s)^.*?</h[23]>` "" $part }}
{{- else }}
{{- $part = replaceRE `(?s)<h1.*?</h1>` "" $part }}
{{- end }}
{{- $text := replaceRE `\s+` " " ($part | plainify | htmlUnescape) }}
{{- $sections = $sections | append (dict "address" (cond (eq $id "") $address (printf "%s#%s" $address $id)) "page" $title "heading" $heading "text" $text) }}
{{- end }}
{{- end }}
{{- end -}}
window.almanacSections = {{ $sections | jsonify }};

"""Ways to hide text from a person, and ways that only look like one. WORD stands for a technique's own word.

A value is markup, or markup and style rules.
"""

ABSOLUTE = "position:absolute"
BOX = "position:relative;width:300px;height:24px"

HIDDEN = {
    "display": "<p style='display:none'>WORD</p>",
    "hidden": "<p hidden>WORD</p>",
    "until found": "<div hidden=until-found>WORD</div>",
    "visibility": "<p style='visibility:hidden'>WORD</p>",
    "collapse": "<p style='visibility:collapse'>WORD</p>",
    "visibility inherited": "<div style='visibility:hidden'><p style='visibility:inherit'>WORD</p></div>",
    "opacity": "<div style='opacity:0'><p>WORD</p></div>",
    "nearly no opacity": "<p style='opacity:.04'>WORD</p>",
    "opacities": "<div style='opacity:.3'><p style='opacity:.3'>WORD</p></div>",
    "filter opacity": "<p style='filter:opacity(0)'>WORD</p>",
    "filter opacity percent": "<p style='filter:opacity(2%)'>WORD</p>",
    "blur": "<p style='filter:blur(8px)'>WORD</p>",
    "blur around": "<div style='filter:blur(6px)'><p>WORD</p></div>",
    "brightness": "<div style='filter:brightness(0);background:#fff'><p>WORD</p></div>",
    "contrast": "<div style='filter:contrast(0);background:#fff'><p>WORD</p></div>",
    "svg filter": "<svg width=0 height=0><filter id=f0><feFlood flood-opacity=0></filter></svg>"
    "<p style='filter:url(#f0)'>WORD</p>",
    "mask gradient": "<p style='mask-image:linear-gradient(transparent,transparent)'>WORD</p>",
    "mask picture": "<p style=\"mask-image:url('data:image/svg+xml,<svg/>')\">WORD</p>",
    "transparent": "<p style='color:transparent'>WORD</p>",
    "nearly transparent": "<p style='color:rgba(0,0,0,.05)'>WORD</p>",
    "same colour": "<p style='color:#fff'>WORD</p>",
    "near colour": "<div style='background:#222'><p style='color:#262626'>WORD</p></div>",
    "other notation": "<div style='background:oklch(0.6 0.1 200)'>"
    "<p style='color:oklch(0.602 0.1 200)'>WORD</p></div>",
    "colour of an ancestor": "<div style='background:#048'><div><p style='color:#048'>WORD</p></div></div>",
    "colour through glass": "<div style='background:#808080'><div style='background:rgba(255,255,255,.5)'>"
    "<p style='color:#bfbfbf'>WORD</p></div></div>",
    "fill": "<p style='-webkit-text-fill-color:transparent'>WORD</p>",
    "fill of the ground": "<p style='-webkit-text-fill-color:#fefefe;color:#000'>WORD</p>",
    "clipped ground": "<p style='background:#fff;background-clip:text;color:transparent'>WORD</p>",
    "clipped pale gradient": "<p style='background:linear-gradient(#fff,#fdfdfd);background-clip:text;"
    "color:transparent'>WORD</p>",
    "gradient of one colour": "<div style='background:linear-gradient(#333,#333)'>"
    "<p style='color:#353535'>WORD</p></div>",
    "positioned background": f"<div style='{BOX}'><div style='{ABSOLUTE};inset:0;background:#000'></div>"
    f"<span style='{ABSOLUTE}'>WORD</span></div>",
    "background behind": f"<div style='{BOX};z-index:0'><div"
    f" style='{ABSOLUTE};inset:0;background:#111;z-index:-1'>"
    "</div>WORD</div>",
    "background of a pseudo-element": (
        "<div class=pg>WORD</div>",
        ".pg{position:relative;color:#fff;z-index:0}"
        ".pg::before{content:'';position:absolute;inset:0;background:#fff;z-index:-1}",
    ),
    "zero size": "<div style='width:0;height:0;overflow:hidden'>WORD</div>",
    "no height": "<div style='max-height:0;overflow:hidden'>WORD</div>",
    "one pixel": f"<div style='{ABSOLUTE};width:1px;height:1px;overflow:hidden'>WORD</div>",
    "screen readers only": f"<span style='{ABSOLUTE};width:1px;height:1px;padding:0;margin:-1px;"
    f"overflow:hidden;"
    "clip:rect(0,0,0,0);white-space:nowrap;border:0'>WORD</span>",
    "one pixel scroller": "<div style='height:1px;overflow:auto'>WORD</div>",
    "clip": f"<div style='{ABSOLUTE};clip:rect(0,0,0,0)'>WORD</div>",
    "clip beside": f"<div style='{ABSOLUTE};clip:rect(100px,200px,200px,100px)'>WORD</div>",
    "inset": "<div style='clip-path:inset(50%)'>WORD</div>",
    "inset away": "<div style='width:200px;clip-path:inset(0 0 0 190px)'>WORD</div>",
    "circle": "<div style='clip-path:circle(0)'>WORD</div>",
    "circle elsewhere": "<div style='clip-path:circle(20px at 500px 8px);width:600px'>WORD</div>",
    "polygon": "<div style='clip-path:polygon(0 0,0 0,0 0)'>WORD</div>",
    "flat polygon": "<div style='clip-path:polygon(0 0,100% 100%,0 0)'>WORD</div>",
    "path": "<div style=\"clip-path:path('M0 0Z')\">WORD</div>",
    "left": f"<div style='{ABSOLUTE};left:-9999px'>WORD</div>",
    "top": f"<div style='{ABSOLUTE};top:-9999px'>WORD</div>",
    "margin": "<div style='margin-left:-4000px;width:300px'>WORD</div>",
    "translated": "<div style='transform:translateX(-3000px)'>WORD</div>",
    "translate property": "<div style='translate:-3000px 0'>WORD</div>",
    "indent": "<div style='text-indent:-9999px'>WORD</div>",
    "indent cut off": "<div style='text-indent:100%;white-space:nowrap;overflow:hidden;"
    "width:200px'>WORD</div>",
    "fixed outside": "<div style='position:fixed;left:200vw'>WORD</div>",
    "fixed below": "<div style='position:fixed;top:150vh'>WORD</div>",
    "cut off below": f"<div style='overflow:hidden;{BOX}'><div style='{ABSOLUTE};top:300px'>WORD</div></div>",
    "cut off line": "<div style='overflow:hidden;height:18px;line-height:18px;"
    "width:60px'>stays<br>WORD</div>",
    "cut off in its line": "<div style='overflow:hidden;white-space:nowrap;width:60px;"
    "text-overflow:ellipsis'>"
    "stays and a great deal of other text WORD</div>",
    "line clamp": "<div style='display:-webkit-box;-webkit-box-orient:vertical;"
    "-webkit-line-clamp:1;overflow:hidden;"
    "width:40px'>stays and some WORD</div>",
    "before a scroller": f"<div style='overflow:auto;{BOX}'><div style='{ABSOLUTE};left:-500px'>WORD</div>"
    "<div style='width:900px'>stays</div></div>",
    "contained": f"<div style='contain:strict;{BOX}'><div style='{ABSOLUTE};top:100px'>WORD</div></div>",
    "scale": "<div style='transform:scale(0)'>WORD</div>",
    "small scale": "<div style='transform:scale(.05)'>WORD</div>",
    "scale property": "<div style='scale:.01'>WORD</div>",
    "flat": "<div style='transform:scaleY(0)'>WORD</div>",
    "on its edge": "<div style='transform:rotateY(90deg)'>WORD</div>",
    "nearly on its edge": "<div style='transform:rotateX(88deg)'>WORD</div>",
    "back of a card": "<div style='transform:rotateY(180deg);backface-visibility:hidden'>WORD</div>",
    "back in a turned card": "<div style='transform:rotateY(180deg);transform-style:preserve-3d'>"
    "<div style='backface-visibility:hidden'>WORD</div></div>",
    "back by rotate": "<div style='rotate:y 180deg;backface-visibility:hidden'>WORD</div>",
    "zoom": "<div style='zoom:.05'>WORD</div>",
    "no font size": "<p style='font-size:0'>WORD</p>",
    "tiny font": "<p style='font-size:1px'>WORD</p>",
    "letters in a heap": "<p style='letter-spacing:-1em'>WORD</p>",
    "content": "<div style='content-visibility:hidden'>WORD</div>",
    "details": "<details><summary>stays</summary>WORD</details>",
    "dialog": "<dialog>WORD</dialog>",
    "popover": "<div popover>WORD</div>",
    "covered": f"<div style='{BOX}'>WORD<div style='{ABSOLUTE};inset:0;background:#fff'></div></div>",
    "covered without events": f"<div style='{BOX}'>WORD<div style='{ABSOLUTE};inset:0;background:#eee;"
    "pointer-events:none'></div></div>",
    "covered by the next": "<div style='height:20px;overflow:visible'>WORD</div>"
    "<div style='position:relative;margin-top:-22px;height:24px;background:#fff'></div>",
    "covered by a pseudo-element": (
        "<div class=pc>WORD</div>",
        ".pc{position:relative}.pc::after{content:'';position:absolute;inset:0;background:#fff}",
    ),
    "behind": f"<div style='{BOX};background:#ddf'><div style='{ABSOLUTE};z-index:-1'>WORD</div></div>",
    "covered by two": f"<div style='{BOX}'>WORD<div style='{ABSOLUTE};inset:0 50% 0 0;background:#fff'></div>"
    f"<div style='{ABSOLUTE};inset:0 0 0 50%;background:#fff'></div></div>",
    "script": "<script>'WORD'</script>",
    "style": "<style>WORD{}</style>",
    "noscript": "<noscript>WORD</noscript>",
    "template": "<template>WORD</template>",
    "comment": "<!-- WORD -->",
    "attributes": "<img alt=WORD title=WORD><a title=WORD href='/WORD'></a>",
    "fields": "<input value=WORD><input type=button value=WORD><input placeholder=WORD>"
    "<textarea>WORD</textarea>",
    "choices": "<select><option>WORD</select><datalist><option>WORD</datalist>",
    "editable": "<div contenteditable><b>WORD</b></div><div role=textbox>WORD</div>",
    "fallbacks": "<video>WORD</video><canvas>WORD</canvas><object data=x>WORD</object><iframe>WORD</iframe>",
    "svg title": "<svg width=20 height=20><title>WORD</title><desc>WORD</desc><defs>"
    "<text>WORD</text></defs></svg>",
    "svg fill": "<svg width=200 height=20><text y=15 fill=none>WORD</text></svg>",
    "ruby": "<ruby>stays<rp>WORD</rp></ruby>",
    "unslotted": "<div class=unslotted><p>WORD</p></div>",
    "hidden in a shadow tree": "<div class=shadowed></div>",
    "hidden frame": "<iframe style='visibility:hidden' srcdoc='WORD'></iframe>",
    "hidden in a frame": "<iframe srcdoc='<p style=color:#fff>WORD' height=40></iframe>",
    "in a frame that cannot scroll": "<iframe scrolling=no height=40 srcdoc='"
    "<p style=margin-top:300px>WORD'></iframe>",
    "masked": "<p style='-webkit-text-security:disc'>WORD</p>",
}

SHOWN = {
    "plain": "<p>WORD</p>",
    "far down": "<p style='margin-top:1500px'>WORD</p>",
    "white on black": "<div style='background:#000;color:#fff'>WORD</div>",
    "low contrast": "<p style='color:#ccc'>WORD</p>",
    "lower contrast": "<p style='color:#ddd'>WORD</p>",
    "equally bright": "<div style='background:#7f7f7f'><p style='color:#f00'>WORD</p></div>",
    "half transparent": "<p style='opacity:.4'>WORD</p>",
    "over a gradient": "<div style='background:linear-gradient(#000,#00f);color:#fff'>WORD</div>",
    "over a picture": "<div style=\"background:url('data:image/gif;base64,"
    "R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7')\"><p style='color:#fff'>WORD</p></div>",
    "over an image": f"<div style='{BOX}'><img style='{ABSOLUTE};inset:0;width:100%;height:100%' "
    "src='data:image/gif;base64,R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7'>"
    f"<span style='{ABSOLUTE}'>WORD</span></div>",
    "over a positioned background": f"<div style='{BOX}'><div style='{ABSOLUTE};inset:0;"
    f"background:#000'></div>"
    f"<span style='{ABSOLUTE};color:#fff'>WORD</span></div>",
    "over a background behind": f"<div style='{BOX};z-index:0'>"
    f"<div style='{ABSOLUTE};inset:0;background:#111;z-index:-1'></div><b style='color:#fff'>WORD</b></div>",
    "letters of a gradient": "<p style='background:linear-gradient(#f00,#00f);background-clip:text;"
    "color:transparent'>WORD</p>",
    "outlined": "<p style='color:transparent;-webkit-text-stroke:1px #000'>WORD</p>",
    "shadow only": "<p style='color:transparent;text-shadow:0 0 2px #000'>WORD</p>",
    "inner scroller": "<div style='height:40px;overflow:auto'><p style='margin-top:300px'>WORD</p></div>",
    "wide scroller": "<div style='width:200px;overflow-x:auto;white-space:nowrap'>"
    "<span style='display:inline-block;width:900px'>x</span>WORD</div>",
    "scrolled away behind the next": "<div style='height:30px;overflow:auto'>"
    "<p style='margin-top:60px'>WORD</p></div>"
    "<div style='position:relative;background:#eee;height:90px'></div>",
    "open details": "<details open><summary>WORD</summary>x</details>",
    "content-visibility auto": "<div style='content-visibility:auto'>WORD</div>",
    "visible again": "<div style='visibility:hidden'><span style='visibility:visible'>WORD</span></div>",
    "aria-hidden": "<p aria-hidden=true>WORD</p>",
    "inert": "<p inert>WORD</p>",
    "presentation": "<p role=presentation>WORD</p>",
    "slight blur": "<p style='filter:blur(.5px)'>WORD</p>",
    "harmless filters": ""
    "<p style='filter:brightness(.9) contrast(1.1) grayscale(1) drop-shadow(0 0 1px)'>WORD</p>",
    "brightness without a ground": "<p style='filter:brightness(0);color:#888'>WORD</p>",
    "fading mask": "<p style='mask-image:linear-gradient(#000,transparent)'>WORD</p>",
    "clipped a little": "<p style='clip-path:inset(1px)'>WORD</p>",
    "round": "<div style='clip-path:circle(50%);width:200px;height:200px;line-height:200px;"
    "text-align:center'>WORD</div>",
    "upside down": "<p style='transform:rotate(180deg)'>WORD</p>",
    "on its side": "<p style='transform:rotate(90deg);width:40px;height:40px'>WORD</p>",
    "mirrored": "<p style='transform:scaleX(-1)'>WORD</p>",
    "front of a card": "<div style='transform:rotateY(0);backface-visibility:hidden'>WORD</div>",
    "back that shows": "<div style='transform:rotateY(180deg)'>WORD</div>",
    "small": "<p style='font-size:9px'>WORD</p>",
    "tight": "<p style='letter-spacing:-.05em'>WORD</p>",
    "vertical": "<p style='writing-mode:vertical-rl;height:60px'>WORD</p>",
    "right to left": "<p dir=rtl>WORD</p>",
    "contents": "<div style='display:contents'>WORD</div>",
    "out of a clipping parent": f"<div style='overflow:hidden;height:4px'>"
    f"<div style='{ABSOLUTE}'>WORD</div></div>"
    "<p style='height:20px'></p>",
    "overlaps a background": "<div style='height:10px'>WORD</div>"
    "<div style='background:#eee;height:10px'></div>",
    "under glass": f"<div style='{BOX}'>WORD<div style='{ABSOLUTE};inset:0;"
    f"background:rgba(0,0,0,.3)'></div></div>",
    "under nothing": f"<div style='{BOX}'>WORD<div style='{ABSOLUTE};inset:0'></div></div>",
    "partly covered": f"<div style='{BOX}'>WORD<div style='{ABSOLUTE};left:150px;right:0;top:0;bottom:0;"
    "background:#fff'></div></div>",
    "fixed": "<div style='position:fixed;right:0;bottom:0'>WORD</div>",
    "sticky": "<div style='position:sticky;top:0'>WORD</div>",
    "button": "<button>WORD</button>",
    "label": "<label>WORD <input></label>",
    "table": "<table><tr><td>WORD</td></tr></table>",
    "svg": "<svg width=300 height=20><text y=15>WORD</text></svg>",
    "slotted": "<div class=slotted><span>WORD</span></div>",
    "in a shadow tree": "<div class=shady></div>",
    "frame": "<iframe srcdoc='<p>WORD' height=60></iframe>",
    "scrolled away in a frame": "<iframe height=60 srcdoc='<p style=margin-top:300px>WORD'></iframe>",
}

TREES = """
for (const [name, inner] of [
    ["unslotted", ""], ["slotted", "<p><slot></slot></p>"], ["shady", "<p>SHADY</p>"],
    ["shadowed", "<p style='opacity:0'>SHADOWED</p>"]]) {
  for (const host of document.querySelectorAll("." + name))
    host.attachShadow({mode: "open"}).innerHTML = inner;
}"""


def page() -> tuple[str, list[str], list[str]]:
    """All techniques in one page, hidden ones between shown ones, with the words of each."""
    parts, rules, shown, hidden = [], [], [], []
    trees = TREES
    for kind, techniques, words in (("S", SHOWN, shown), ("H", HIDDEN, hidden)):
        for number, entry in enumerate(techniques.values()):
            word = f"{kind}{number:03}{kind.lower()}"
            words.append(word)
            markup, rule = entry if isinstance(entry, tuple) else (entry, "")
            rules.append(rule)
            parts.append((number / len(techniques), f"<section>{markup.replace('WORD', word)}</section>"))
            trees = trees.replace("SHADY", word) if "class=shady>" in markup else trees
            trees = trees.replace("SHADOWED", word) if "class=shadowed>" in markup else trees
    body = "\n".join(part for _, part in sorted(parts, key=lambda part: part[0]))
    style = "section{margin:8px 0 30px;min-height:1px}" + "".join(rules)
    return f"<!doctype html><style>{style}</style>{body}<script>{trees}</script>", shown, hidden

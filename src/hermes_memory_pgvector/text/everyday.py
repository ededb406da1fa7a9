"""Whether a prompt asks anything of the memory at all: small talk and chores do not. Pure.

"thanks", "commit and push" and "mach weiter" are made of words that are said every day, about anything. Whatever stored
text contains them, it is no answer. A prompt is worth asking about when at least one of its words is none of these.
"""

from __future__ import annotations

import re

from hermes_memory_pgvector.text.words import STOP_WORDS, UNSPACED, fold


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_TALK = _words(
    # Greetings, thanks, leave
    """hi hello hey hiya howdy yo greetings welcome morning afternoon evening night day today tonight tomorrow bye
    goodbye cheers thanks thank thx ty tysm thankful appreciate appreciated please pls plz sorry excuse pardon
    apologies congrats buddy mate dude bro guys folks everyone assistant bot hermes later soon weekend
    """
    # Answers and judgements
    """ok okay k kk yes yeah yep yup ya yea nope nah sure alright right fine good great nice cool perfect excellent
    awesome amazing wonderful fantastic brilliant lovely super neat sweet wow oh ah aha hm hmm hmmm huh um uh lol
    haha hahaha hehe rofl funny interesting impressive bad terrible awful worse worst better best well wrong
    correct incorrect true false exactly absolutely definitely certainly totally agree agreed disagree deal np
    problem worries worry matter idea maybe perhaps probably possibly guess suppose believe sounds sound looks
    look seems seem works work job done finished finish ready enough close almost quite pretty really actually
    indeed honestly simply helped helpful useful happy glad sad love like hate enjoy hope wish luck fun joke jokes
    """
    # What is done with an answer, and how it should be
    """go ahead on continue carry keep proceed resume stop cancel exit quit end wait hold pause hang second sec
    minute moment try retry repeat redo again start begin restart over back next previous last first third one two
    three other another same different both else instead more less little bit lot much many few most least way
    ways never always finally yet thing things something anything everything nothing someone anyone stuff part
    parts rest everywhere anywhere somewhere option options choice step steps do does did doing make makes made
    making get got give gives take put use used using let lets know think thought mean means meant say says said
    saying tell talk speak ask asked answer answers reply respond response question questions explain explanation
    describe elaborate clarify understand understood see show shown display print list find search check verify
    confirm compare review read reread look need needs want wants wanted would could should able help helps care
    bother mind forget ignore skip leave come came going gone happen happens happened feel short shorter shorten
    long longer brief briefly concise simple simpler simplify clear clearer clearly detail details detailed easy
    easier hard harder fast faster quick quicker quickly slow slower slowly big bigger small smaller new newer old
    older whole full half double exact example examples word words sentence sentences line lines paragraph
    paragraphs bullet bullets point points summary summarize summarise sum tldr tone style formal informal
    friendly friendlier polite casual professional version draft text message email translate translation rewrite
    rephrase reword paraphrase proofread polish improve spelling grammar english german french spanish italian
    portuguese japanese chinese korean russian dutch time times date
    """
)
"""English small talk, and what people say about an answer."""

_CHORES = _words(
    """git commit commits committed push pushed pull pulls fetch merge merged rebase rebased branch branches checkout
    stash diff diffs status log logs revert reverted reset undo tag clone origin main master upstream head remote
    repo repository pr prs mr request requests issue issues ticket changelog release bump version run runs running
    rerun execute build builds rebuild compile compiles compiled deploy deployed deployment ship launch install
    installs installed uninstall upgrade upgrades update updates updated downgrade start stop restart kill test
    tests tested testing unit suite pass passes passing fail fails failed failing failure failures break breaks
    broken crash crashes lint linter linting linters format formatter formatting prettier ruff mypy typecheck type
    types typing hint hints fix fixes fixed fixing bug bugs debug error errors warning warnings exception
    traceback stacktrace ci pipeline write add adds added append insert create creates created generate delete
    deletes deleted remove removes removed drop change changes changed changing edit edits modify move moved
    rename renamed copy replace replaced refactor refactored clean cleanup tidy extract split inline wrap convert
    turn apply applies implement implements implemented optimize optimise document save load open opened close
    closed set file files folder folders directory directories path code codebase script scripts snippet function
    functions method methods class classes variable variables constant constants parameter parameters argument
    arguments import imports module modules package packages library libraries dependency dependencies comment
    comments docstring docstrings docs documentation readme config configuration setting settings command commands
    terminal shell console output input result results stack unused tab tabs space spaces indent indentation
    semicolon semicolons todo todos placeholder boilerplate npm npx yarn pnpm pip pipx uv poetry conda brew apt
    cargo make docker compose container containers kubectl bash ls cd cat grep rm mkdir chmod curl pytest
    jest node python server servers app
    """
)
"""What a coding agent is told to do a hundred times a day; in a question these words do ask something."""

_OTHER_LANGUAGES = _words(
    # German
    """hallo moin servus tschuss tschues guten gute gutes morgen tag abend nacht danke dankeschon schon schoen vielen
    dank herzlichen bitte ja jawohl nein doch genau klar gerne gern okay gut besser super toll prima perfekt passt
    stimmt richtig falsch alles mach mache machs machen weiter weitermachen nochmal noch einmal mal los warte
    warten moment stopp fertig wie geht gehts was wer wo wann warum wieso kannst konntest kann das es du dir dich
    ich mir mich wir uns sie ihnen ist sind bist der die dem ein eine einen und oder aber nicht kein keine so auch
    zu zum zur mit fur von auf in im am an bis dann jetzt hier da dies diese dieser dieses erklar erklare erklaren
    zeig zeige zeigen hilf hilfe helfen verstehe verstanden meinst kurz kurzer lang langer zusammen fass fasse
    zusammenfassen zusammenfassung ubersetze schreib schreibe schreiben lies andere anderen anders ersten erste
    zweite nachste nachsten datei fehler behebe korrigiere korrigier andern teste starte spater wochenende leid
    """
    # French
    """bonjour bonsoir salut coucou merci beaucoup bien sur oui non ouais si d'accord ok s'il te vous plait plaît svp
    stp parfait super genial tres bon bonne nuit journee soiree au revoir a bientot ca va vas-y vas y allez
    continue continuer continuez encore recommence recommencer recommencez attends attendez arrete stop fini
    comment pourquoi quoi qui que peux peux-tu pouvez tu je il elle on nous le la les un une des de du et ou mais
    ne pas plus moins celui celui-la celle cela ceci c'est est es suis fais fait faire le-la dis montre montre-moi
    explique expliquer aide aider moi corrige corriger resume resumer traduis traduire ecris autre meme premier
    premiere suivant suivante comprends compris desole pardon exactement voila aujourd'hui demain
    """
    # Spanish
    """hola buenos buenas dias tardes noches gracias muchas muchisimas por favor si no claro vale bueno bien muy
    perfecto genial excelente exacto correcto adios hasta luego manana que tal como estas esta estamos todo
    continua continuar sigue seguir adelante otra otro vez de nuevo repite intentalo intenta espera para listo
    hecho haz hazlo hacerlo hacer puedes podrias puede ayuda ayudame ayudar explica explicar explicame muestra
    muestrame corrige corregir corrigelo arregla arreglar arreglarlo arreglalo resume traduce escribe lo la los
    las el un una y o pero me te le nos eso esto ese este mas menos acuerdo entiendo entendido primero primera
    siguiente mismo siento dime yo tu
    """
    # Italian
    """ciao salve buongiorno buonasera buonanotte grazie mille prego per favore si no certo va bene benissimo
    perfetto ottimo esatto giusto arrivederci domani come stai sta tutto continua continuare avanti vai ancora
    prova provare riprova di nuovo ripeti aspetta ferma fatto finito fai fallo fare puoi potresti aiuto aiutami
    spiega spiegami spiegare mostra mostrami correggi correggere correggilo riassumi traduci scrivi il lo la i gli
    le un una uno e o ma mi ti ci questo quello piu meno altro altra stesso primo prossimo capisco capito scusa
    d'accordo tu io che cosa
    """
    # Portuguese
    """ola oi bom boa dia tarde noite obrigado obrigada muito por favor sim nao claro certo tudo bem beleza perfeito
    otimo exato tchau ate logo amanha como vai esta continue continua continuar pode podes poderia prossiga de
    novo outra vez tente tenta espera para pare pronto feito faz faca fazer ajuda ajudar me explica explique
    explicar mostra mostre corrija corrige corrigir resuma traduza escreve o a os as um uma e ou mas isso isto
    esse este mais menos outro mesmo primeiro proximo entendi desculpa desculpe pela pelo voce eu que
    """
    # Dutch and Swedish
    """hoi goedemorgen goedemiddag goedenavond dank je jij u wel bedankt alsjeblieft graag ja nee prima goed mooi ga
    gaat verder opnieuw nog een keer wacht klaar hoe het met kun kan dit dat uitleggen doei hej hejsan god morgon
    kvall tack sa mycket snalla nej perfekt fortsatt igen vanta klar hur mar du ar lat det forklara hejda
    """
    # Russian, Turkish, Polish
    """привет здравствуйте здравствуй доброе добрыи утро день вечер ночи спокоинои спасибо большое пожалуиста да нет
    хорошо отлично понятно ладно пока как дела что ты вы продолжаи продолжаите дальше еще раз снова стоп подожди
    готово помоги объясни покажи исправь это можешь сделаи merhaba selam gunaydin tesekkurler tesekkur ederim
    lutfen evet hayir tamam devam et nasilsin czesc dzien dobry dziekuje prosze tak nie dobrze dalej jeszcze raz
    swietnie
    """
)
"""Small talk in other languages, folded."""

_UNSPACED_TALK = re.compile(
    "|".join(
        sorted(
            _words(
                # Japanese
                """ありがとうございました ありがとうございます ありがとう どうも こんにちは こんばんは
                おはようございます おはよう おやすみなさい おやすみ さようなら またね はい いいえ うん ううん ええ
                そうです そうですね わかりました 分かりました 了解です 了解しました 了解 承知しました すみません
                ごめんなさい ごめん お願いします お願い ください 続けて 続き 続行 もう一度 もう一回 やり直して
                大丈夫です 大丈夫 いいね いいです 完璧です 完璧 すごい 素晴らしい 待って ちょっと 止めて 次 教えて
                説明して 見せて 直して 修正して 元気ですか お元気ですか 元気 です ですか ます か ね よ を の は が
                に も して する それ これ
                """
                # Chinese
                """谢谢你 谢谢您 谢谢 多谢 感谢 你好吗 你好 您好 大家好 早上好 晚上好 下午好 早安 晚安 再见 拜拜 好的
                好吧 好 是的 是 不是 不 不用 不对 对的 对 可以 没问题 没关系 行 嗯 哈哈 请继续 继续 请 再试一次
                再试 再来一次 再来 再说一遍 重试 重来 一次 一下 等等 等一下 停止 停 完成 完美 很好 太好了 太棒了
                不错 明白了 明白 懂了 知道了 了解 抱歉 对不起 帮我 帮忙 解释 说明 修复 修改 检查 总结 翻译 下一个
                下一步 吧 吗 呢 啊 呀 了 的 这个 那个 这 那 你 我 您 什么 怎么样 怎么 为什么 能 会 再 都
                """
                # Korean, Thai
                """안녕하세요 안녕 감사합니다 감사해요 고마워요 고마워 고맙습니다 네 예 아니요 아니 좋아요 좋아
                계속해 계속 주세요 해주세요 해줘 다시 한번 알겠습니다 알겠어 괜찮아요 괜찮아 잘했어 잠깐만 부탁해
                부탁합니다 좀 더 สวัสดี ขอบคุณ ครับ ค่ะ คะ ใช่ ไม่ใช่ ไม่ โอเค ต่อ อีกครั้ง ดี มาก
                """
            ),
            key=len,
            reverse=True,
        )
    )
)
"""Small talk in scripts written without spaces: taken away, the longest first, nothing must be left."""

_ASKING = _words("who whom whose what which when where why how")
_OWN = _words("i my mine me we our ours us")
_WORD = re.compile(rf"[^\W_{UNSPACED}]+(?:'[^\W_{UNSPACED}]+)*")
_UNSPACED_RUN = re.compile(f"[{UNSPACED}]+")
_ENDINGS = ("", "s", "es", "d", "ed", "ing", "ly")
MAX_TALK_CHARS = 200
"""Nobody writes small talk longer than this."""


def worth_asking(prompt: str) -> bool:
    """Whether a prompt has a word that a memory could be about.

    What counts depends on how it is said. "Run the tests" tells the agent to do something, "how are the tests run?" and
    "tell me about the tests" want to know something: there the words of chores count. In a question about the speaker
    ("when do I finish work?") every word counts.
    """
    if len(prompt) > MAX_TALK_CHARS:
        return True
    folded = fold(prompt)
    words = _WORD.findall(folded)
    if _is_question(folded, words):
        says_nothing = _is_talk if _OWN.isdisjoint(words) else _is_stop_word
    else:
        says_nothing = _is_talk if "about" in words else _is_talk_or_chore
    return not all(map(says_nothing, words)) or any(
        _UNSPACED_TALK.sub("", run) for run in _UNSPACED_RUN.findall(folded)
    )


def _is_question(folded: str, words: list[str]) -> bool:
    """Whether it asks who, what, when, where, why or how, rather than using such a word in passing."""
    asking = next((place for place, word in enumerate(words) if word.partition("'")[0] in _ASKING), None)
    return asking == 0 or (asking is not None and "?" in folded)


def _is_stop_word(word: str) -> bool:
    return len(word) == 1 or word in STOP_WORDS


def _is_talk(word: str) -> bool:
    if _is_stop_word(word) or word in _OTHER_LANGUAGES or _is_one_of(word, _TALK):
        return True
    # The short forms of other languages: c'est, s'il.
    return "'" in word and all(map(_is_talk, word.split("'")))


def _is_talk_or_chore(word: str) -> bool:
    return _is_talk(word) or _is_one_of(word, _CHORES)


def _is_one_of(word: str, known: frozenset[str]) -> bool:
    return any(word.removesuffix(ending) in known for ending in _ENDINGS)

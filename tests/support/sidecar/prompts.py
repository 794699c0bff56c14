"""Prompts as clients that know nothing of us send them: where their documents stand, and whose words the rest is (ATT-5).

The forms are those of the frameworks, shortened to the lines that carry them. ``{0}`` and ``{1}`` are the documents, ``{q}`` is the
question. What a template marks with ``«never: …»`` is no source: an earlier answer, an example, an instruction.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

TALL, BUILT, ASKED = "The tower is 330 m tall.", "It was opened by Gustave in 1889.", "How tall is the tower?"
_NEVER = re.compile(r"«never: (.*?)»")

Message = dict[str, Any]


@dataclass(frozen=True)
class Prompt:
    """A prompt with its documents in it."""

    messages: tuple[Message, ...]
    documents: tuple[str, str]
    question: str
    never: tuple[str, ...]

    @property
    def written(self) -> str:
        """The text of all its messages."""
        return "\n".join(str(one["content"]) for one in self.messages)


def filled(
    template: str | Sequence[Message], *, documents: tuple[str, str] = (TALL, BUILT), question: str = ASKED
) -> Prompt:
    """Return a template with its documents and its question."""
    given = [{"role": "user", "content": template}] if isinstance(template, str) else list(template)
    never = [text for one in given for text in _NEVER.findall(one["content"])]
    made = [{**one, "content": _text(one["content"], documents, question)} for one in given]
    return Prompt(tuple(made), documents, question, tuple(never))


def _text(template: str, documents: tuple[str, str], question: str) -> str:
    plain = _NEVER.sub(r"\1", template)
    return plain.replace("{0}", documents[0]).replace("{1}", documents[1]).replace("{q}", question)


def _system(text: str, asked: str = "{q}") -> list[Message]:
    return [{"role": "system", "content": text}, {"role": "user", "content": asked}]


FRAMEWORKS: Mapping[str, str | list[Message]] = {
    # LangChain
    "langchain hub, rlm/rag-prompt": "You are an assistant for question-answering tasks. Use the following pieces of retrieved context to answer the "
    "question. If you don't know the answer, just say that you don't know. Use three sentences maximum.\n"
    "Question: {q} \nContext: {0}\n\n{1} \nAnswer:",
    "langchain, stuff": "Use the following pieces of context to answer the question at the end. If you don't know the answer, just say that you "
    "don't know, don't try to make up an answer.\n\n{0}\n\n{1}\n\nQuestion: {q}\nHelpful Answer:",
    "langchain, stuff, the chain as a chat model has it": _system(
        "Use the following pieces of context to answer the user's question.\nIf you don't know the answer, just say that you don't know.\n"
        "----------------\n{0}\n\n{1}"
    ),
    "langchain, refine": "The original question is as follows: {q}\nWe have provided an existing answer: «never: The tower has four feet.»\n"
    "We have the opportunity to refine the existing answer (only if needed) with some more context below.\n------------\n{0}\n{1}\n------------\n"
    "Given the new context, refine the original answer to better answer the question.",
    "langchain, map": "Use the following portion of a long document to see if any of the text is relevant to answer the question. \n"
    "Return any relevant text verbatim.\n{0}\n{1}\nQuestion: {q}\nRelevant text, if any:",
    "langchain, reduce with sources": "Given the following extracted parts of a long document and a question, create a final answer with references "
    '("SOURCES").\n\nQUESTION: {q}\n=========\nContent: {0}\nSource: 28-pl\nContent: {1}\nSource: 30-pl\n=========\nFINAL ANSWER:',
    "langchain, summarize": 'Write a concise summary of the following:\n\n\n"{0}\n{1}"\n\n\nCONCISE SUMMARY:',
    "langchain, from_template": "Answer the question based only on the following context:\n{0}\n\n{1}\n\nQuestion: {q}\n",
    "langchain, question first": "Based on the following context:\n{0}\n{1}\n\nProvide a concise answer to the question '{q}'",
    "langchain, the question is quoted last": "Answer the question based only on the following context:\n\n{0}\n\n---\n\n{1}\n\n---\n\n"
    "Answer the question based on the above context: {q}",
    "langchain rust": "Use the following pieces of context to answer the question at the end.\nIf there is no context but the question is general,"
    "answer that nicely.\n{0}\n{1}\n\nQuestion:{q}\nHelpful Answer:",
    "quivr": _system(
        "Use the following pieces of context to answer the users question in the same language as the question.\n----------------\n{0}\n{1}"
    ),
    # LlamaIndex
    "llamaindex, text_qa": "Context information is below.\n---------------------\n{0}\n{1}\n---------------------\n"
    "Given the context information and not prior knowledge, answer the query.\nQuery: {q}\nAnswer: ",
    "llamaindex, text_qa with metadata": "Context information is below.\n---------------------\nfile_path: towers.md\n\n{0}\n\nfile_path: b.md\n\n{1}\n"
    "---------------------\nGiven the context information and not prior knowledge, answer the query.\nQuery: {q}\nAnswer: ",
    "llamaindex, refine": "The original query is as follows: {q}\nWe have provided an existing answer: «never: The tower has four feet.»\nWe have the "
    "opportunity to refine the existing answer (only if needed) with some more context below.\n------------\n{0}\n{1}\n------------\nGiven the new "
    "context, refine the original answer to better answer the query. If the context isn't useful, return the original answer.\nRefined Answer: ",
    "llamaindex, tree_summarize": "Context information from multiple sources is below.\n---------------------\n{0}\n{1}\n---------------------\nGiven "
    "the information from multiple sources and not prior knowledge, answer the query.\nQuery: {q}\nAnswer: ",
    "llamaindex, citations": "Please provide an answer based solely on the provided sources. Every answer should include at least one source citation. "
    "For example:\nSource 1:\n«never: The sky is red in the evening and blue in the morning.»\nSource 2:\n«never: Water is wet when the sky is red.»\n"
    "Query: When is water wet?\nAnswer: «never: Water will be wet when the sky is red [2], which occurs in the evening [1].»\nNow it's your turn. "
    "Below are several numbered sources of information:\n------\nSource 1:\n{0}\n\nSource 2:\n{1}\n------\nQuery: {q}\nAnswer: ",
    "llamaindex, chat engine": _system(
        "The assistant is talkative.\n\nHere are the relevant documents for the context:\n\n{0}\n\n{1}\n\nInstruction: Based on the above documents, "
        "provide a detailed answer for the user question below."
    ),
    # Haystack, DSPy, txtai, embedchain, kernel-memory, AutoGen, Semantic Kernel, Spring AI, LangChain4j
    "haystack": "Given these documents, answer the question.\nDocuments:\n    {0}\n    {1}\nQuestion: {q}\nAnswer:",
    "haystack, information": "Given the following information, answer the question.\n\nContext:\n\n    {0}\n\n    {1}\n\n\nQuestion: {q}\nAnswer:",
    "dspy": "[[ ## context ## ]]\n[1] «{0}»\n[2] «{1}»\n\n[[ ## question ## ]]\n{q}\n\nRespond with the corresponding output fields, starting with the "
    "field `[[ ## reasoning ## ]]`, then `[[ ## answer ## ]]`, and then ending with the marker for `[[ ## completed ## ]]`.",
    "dspy, passages as text": "[[ ## question ## ]]\n{q}\n\n[[ ## passages ## ]]\n{0}\n{1}\n\nRespond with the corresponding output fields, starting with "
    "the field `[[ ## answer ## ]]`, and then ending with the marker for `[[ ## completed ## ]]`.",
    "txtai": "Answer the following question using only the context below. Only include information specifically discussed.\n\nquestion: {q}\ncontext: "
    "{0} {1}",
    "kernel memory": "Facts:\n==== [File:towers.txt;Relevance:81.2%]:\n{0}\n==== [File:b.txt;Relevance:79.9%]:\n{1}\n======\nGiven only the facts above, "
    "provide a comprehensive/detailed answer.\nYou don't know where the knowledge comes from, just answer.\nQuestion: {q}\nAnswer: ",
    "autogen": "You're a retrieve augmented chatbot. You answer user's questions based on your own knowledge and the\ncontext provided by the user. You "
    "must give as short an answer as possible.\n\nUser's question is: {q}\n\nContext is: {0}\n{1}\n",
    "semantic kernel": "Please use this information to answer the question:\n  Name: Towers\n  Value: {0}\n  Link: https://a.example/1\n"
    "  -----------------\n  Name: Years\n  Value: {1}\n  Link: https://a.example/2\n  -----------------\n\nInclude citations to the relevant information "
    "where it is referenced in the response.\n\nQuestion: {q}",
    "spring ai": "{q}\n\nContext information is below, surrounded by ---------------------\n\n---------------------\n{0}\n{1}\n---------------------\n\n"
    "Given the context and provided history information and not prior knowledge,\nreply to the user comment. If the answer is not in the context, "
    "inform\nthe user that you can't answer the question.\n",
    "langchain4j": "{q}\n\nAnswer using the following information:\n{0}\n\n{1}",
    "embedchain": "Use the following pieces of context to answer the query at the end.\nIf you don't know the answer, just say that you don't know.\n\n"
    "{0} | {1}\n\nQuery: {q}\n\nHelpful Answer:",
    # Products
    "open webui": "### Task:\nRespond to the user query using the provided context, incorporating inline citations in the format [id] **only when the "
    '<source> tag includes an explicit id attribute** (e.g., <source id="1">).\n\n### Guidelines:\n- Do not cite if the <source> tag does not contain an '
    "id attribute.\n- Do not use XML tags in your response.\n\n### Example of Citation:\nIf the user asks about a specific topic and the information is "
    'found in a source with id 1, the response should cite it: * "«never: According to the study, the proposed method increases efficiency by 20% '
    '[1].»"\n\n### Output:\nProvide a clear and direct response to the user\'s query.\n\n<context>\n<source id="1" name="a.md">{0}</source>\n'
    '<source id="2" name="b.md">{1}</source>\n</context>\n\n{q}',
    "open webui, user_query": "<context>\n<source><source_id>1</source_id><source_context>{0}</source_context></source>\n<source><source_id>2</source_id>"
    "<source_context>{1}</source_context></source>\n</context>\n\n<user_query>\n{q}\n</user_query>\n",
    "anythingllm": _system(
        "Given the following conversation, relevant context, and a follow up question, reply with an answer to the current question the user is asking."
        "\nContext:\n[CONTEXT 0]:\n{0}\n[END CONTEXT 0]\n\n[CONTEXT 1]:\n{1}\n[END CONTEXT 1]\n\n"
    ),
    "anythingllm, in the user's message": "{q}\nContext:\n    [CONTEXT 0]:\n    {0}\n    [END CONTEXT 0]\n    [CONTEXT 1]:\n    {1}\n    [END CONTEXT 1]",
    "ragflow": _system(
        "You are an intelligent assistant. Please summarize the content of the knowledge base to answer the question. Answers need to consider chat "
        "history.\n      Here is the knowledge base:\n      {0}\n      {1}\n      The above is the knowledge base."
    ),
    "ragflow, in the user's message": "Here is the knowledge base:\n{0}\n{1}\nThe above is the knowledge base.\n{q}",
    "dify": "Use the following context as your learned knowledge, inside <context></context> XML tags.\n\n<context>\n{0}\n{1}\n</context>\n\nWhen answer to "
    "user:\n- If you don't know, just say that you don't know.\n\n{q}",
    "flowise": "Using the provided context, answer the user's question to the best of your ability using the resources provided.\n------------\n{0}\n{1}\n"
    "------------\nREMEMBER: If there is no relevant information within the context, just say that you're not sure.\nQuestion: {q}",
    "librechat": "The user has attached 2 files to the conversation:\n<files>\n<file>\n<filename>a.md</filename>\n<type>text/markdown</type>\n</file>\n"
    "</files>\n\nA semantic search was executed with the user's message as the query, retrieving the following context inside <context></context> XML "
    "tags.\n\n<context>\n<file>\n<filename>a.md</filename>\n<context><contextItem>\n<![CDATA[{0}]]>\n</contextItem>\n<contextItem>\n<![CDATA[{1}]]>\n"
    "</contextItem></context>\n</file>\n</context>\n\n{q}",
    "continue.dev": "```docs/towers.md\n{0}\n```\n\n```docs/years.md\n{1}\n```\n\n{q}",
    "gpt4all": "### Context:\nCollection: towers\nPath: a.md\nExcerpt: {0}\n\nCollection: towers\nPath: b.md\nExcerpt: {1}\n\n### Question:\n{q}",
    # Vendors' cookbooks
    "azure search demo": "{q}\n\nSources:\n\ntowers.pdf#page=2: {0}\n\nyears.pdf#page=7: {1}",
    "openai cookbook, articles": "Use the below articles on towers to answer the subsequent question. If the answer cannot be found in the articles, write "
    '"I could not find an answer."\n\nWikipedia article section:\n"""\n{0}\n"""\n\nWikipedia article section:\n"""\n{1}\n"""\n\nQuestion: {q}',
    "openai cookbook, embeddings": "Answer the question based on the context below, and if the question can't be answered based on the context, say \"I "
    "don't know\"\n\nContext: {0}\n\n###\n\n{1}\n\n---\n\nQuestion: {q}\nAnswer:",
    "anthropic, documents": '<documents>\n<document index="1">\n<source>a.pdf</source>\n<document_content>\n{0}\n</document_content>\n</document>\n'
    '<document index="2">\n<source>b.pdf</source>\n<document_content>\n{1}\n</document_content>\n</document>\n</documents>\n\n{q}',
    "anthropic, transcript": "Here is a document, in <doc></doc> XML tags:\n<doc>{0} {1}</doc>\n\nHuman: {q}",
    "bedrock": "You are a question answering agent. I will provide you with a set of search results and a user's question.\n\nHere are the search results in "
    "numbered order:\n1. {0}\n2. {1}\n\nHere is the user's question:\n<question>\n{q}\n</question>",
    "bedrock, search_results": "Here are the search results in numbered order:\n<search_results>\n<search_result>\n<content>\n{0}\n</content>\n<source>\n1\n"
    "</source>\n</search_result>\n<search_result>\n<content>\n{1}\n</content>\n<source>\n2\n</source>\n</search_result>\n</search_results>\n\n{q}",
    "cohere, grounded": "## Task & Context\nYou answer questions.\n\n<results>\nDocument: 0\ntitle: Towers\ntext: {0}\n\nDocument: 1\ntitle: Years\ntext: {1}\n"
    "</results>\n\n{q}",
    "llama 2": "[INST]<<SYS>> You are an assistant for question-answering tasks. Use the following pieces of retrieved context.<</SYS>>\nQuestion: {q}\n"
    "Context: {0} {1}\nAnswer: [/INST]",
    # Shapes that need no word
    "json, chunks": '{q}\n[{"id": 1, "score": 0.8, "text": "{0}"}, {"id": 2, "score": 0.7, "text": "{1}"}]',
    "json, hits in an object": '{"hits": [{"_source": {"body": "{0}"}}, {"_source": {"body": "{1}"}}]}\n\n{q}',
    "markdown, own headings": "# Answer from this page\n\n## Source material\n{0}\n\n{1}\n\n## User question\n{q}",
    "markers, begin and end": "--- BEGIN DOCUMENT ---\n{0}\n{1}\n--- END DOCUMENT ---\n{q}",
    "markers, equals": "=== DOCUMENT 1: towers.md ===\n{0}\n=== DOCUMENT 2: years.md ===\n{1}\n=== END ===\n\n{q}",
    "markers, files": "--- FILE: towers.md ---\n{0}\n--- FILE: years.md ---\n{1}\n\nQuestion: {q}",
    "brackets": "[DOCUMENT]\n{0}\n{1}\n[/DOCUMENT]\n\n{q}",
    "angles": "<<<CONTEXT>>>\n{0}\n{1}\n<<<END CONTEXT>>>\n\n{q}",
    "numbered by colon": "{q}\n\n[1]: {0}\n[2]: {1}",
    "source lines": "{q}\n\n[Source: towers.md]\n{0}\n\n[Source: years.md]\n{1}",
    "rules alone": "---\n{0}\n{1}\n---\n{q}",
    "summarise this": "Summarize this text: {0} {1}",
    "translate this": "Translate the following text into German:\n\n{0} {1}",
    "rewrite an email": "Please rewrite this email so that it sounds friendlier.\n\nSubject: Our tower\n\nDear Ann,\n\n{0} {1}\n\nBest regards\nBob",
    "a forwarded mail": "What does Bob want?\n\nFrom: bob@acme.example\nTo: ann@acme.example\nSubject: tower\n\n{0} {1}",
    "a program without a fence": "Fix this code:\n\ndef height():\n    # {0}\n    # {1}\n    return 303",
    "a log": "Why did it stop?\n\n2026-01-02 10:00:01 INFO {0}\n2026-01-02 10:00:02 ERROR {1}\n2026-01-02 10:00:03 INFO done",
}
"""By provenance; where a document stands in a system message, that is the message it was sent in."""

_DE = ("Der Turm ist 330 m hoch.", "Gustave hat ihn 1889 eröffnet.")
_FR = ("La tour mesure 330 m.", "Gustave l'a ouverte en 1889.")
_ES = ("La torre mide 330 m.", "Gustave la inauguró en 1889.")
_ZH = ("这座塔高330米。", "古斯塔夫于1889年开放了它。")
_JA = ("塔の高さは330メートルです。", "ギュスターヴが1889年に開きました。")
_KO = ("탑의 높이는 330미터입니다.", "귀스타브가 1889년에 열었습니다.")
_RU = ("Высота башни 330 м.", "Гюстав открыл её в 1889 году.")

LANGUAGES: Mapping[str, tuple[str, str, tuple[str, str]]] = {
    "german, kontext": (("Beantworte die Frage basierend auf folgendem Kontext.\nWenn die Antwort nicht im Kontext steht, sage 'Ich weiß es nicht'.\n\n"
        "Kontext:\n{0}\n{1}\n\nFrage: {q}\nAntwort:\n"), "Wie hoch ist der Turm?", _DE),
    "german, no label": (("Beantworten Sie die Frage nur anhand des folgenden Kontexts: \n{0}\n{1}\n---\nBeantworten Sie die Frage anhand des obigen "
        "Kontexts: {q}\n"), "Wie hoch ist der Turm?", _DE),
    "german, compound": ("Frage: {q}\n\nLehrkonzept-Quellen:\n{0}\n{1}\n\nAufgabe:\nBeantworte die Frage in 3 bis 6 Sätzen.", "Wie hoch ist der Turm?", _DE),
    "german, headings": ("## Kontext\n{0}\n\n{1}\n\n## Frage\n{q}", "Wie hoch ist der Turm?", _DE),
    "german, summarise": ("Fasse den folgenden Text zusammen:\n\n{0} {1}", "", _DE),
    "french, stuff": (("Utilisez les éléments de contexte suivants pour répondre à la question à la fin. Si vous ne connaissez pas la réponse, dites "
        "simplement que vous ne savez pas.\n{0}\n{1}\nQuestion : {q}\nRéponse utile :"), "Quelle est la hauteur de la tour ?", _FR),
    "french, contexte": ("Contexte : \n{0}\n{1}\n\nQuestion : {q}\nRéponse :", "Quelle est la hauteur de la tour ?", _FR),
    "spanish, contexto": (("Usa los siguientes fragmentos de contexto recuperado para responder a la pregunta del usuario.\n\nContexto:\n{0}\n{1}\n\nPregunta: "
        "{q}"), "¿Cuánto mide la torre?", _ES),
    "spanish, recuperado": ("Contexto recuperado:\n{0}\n{1}\n\nPregunta:\n{q}", "¿Cuánto mide la torre?", _ES),
    "italian, fonti": (("Rispondi alla domanda basandoti ESCLUSIVAMENTE sul contesto fornito.\n\nCONTESTO:\n[Fonte 1 — torri | doc: a]:\n{0}\n\n[Fonte 2 — anni | doc: b]:"
        "\n{1}\n\nDOMANDA: {q}\n\nRISPOSTA:"), "Quanto è alta la torre?", ("La torre è alta 330 m.", "Gustave la aprì nel 1889.")),
    "italian, contenuto": ("DOCUMENTO: torri.pdf\n\nCONTENUTO RILEVANTE:\n{0}\n\n{1}\n\nDOMANDA: {q}\n\nRispondi alla domanda basandoti sui contenuti forniti sopra.",
        "Quanto è alta la torre?", ("La torre è alta 330 m.", "Gustave la aprì nel 1889.")),
    "portuguese, contexto": ("Responda à pergunta com base no contexto abaixo.\n\nContexto:\n{0}\n{1}\n\nPergunta:\n{q}\n\nResposta:", "Qual é a altura da torre?",
        ("A torre tem 330 m.", "Gustave abriu-a em 1889.")),
    "dutch, bronnen": ("Beantwoord de vraag op basis van de bronnen.\n\nBRONNEN:\n{0}\n{1}\n\nVRAAG: {q}\n\nANTWOORD:", "Hoe hoog is de toren?",
        ("De toren is 330 m hoog.", "Gustave opende hem in 1889.")),
    "dutch, relevant information": ("VRAAG VAN GEBRUIKER:\n{q}\n\nRELEVANTE INFORMATIE UIT TICKETPORTAAL:\n{0}\n{1}\n\nINSTRUCTIES:\n1. Wees beknopt",
        "Hoe hoog is de toren?", ("De toren is 330 m hoog.", "Gustave opende hem in 1889.")),
    "polish, kontekst": ("Odpowiedz na pytanie na podstawie poniższego kontekstu:\n\n{0}\n\n{1}\n\nPytanie: {q}", "Jak wysoka jest wieża?",
        ("Wieża ma 330 m wysokości.", "Gustave otworzył ją w 1889 roku.")),
    "polish, elements": ("<pytanie>\n{q}\n</pytanie>\n\n<dokument>\n{0}\n{1}\n</dokument>", "Jak wysoka jest wieża?",
        ("Wieża ma 330 m wysokości.", "Gustave otworzył ją w 1889 roku.")),
    "chinese, known information": ("已知信息:\n{0}\n{1}\n\n根据上述已知信息，简洁和专业的来回答用户的问题。\n如果无法从中得到答案，请说“根据已知信息无法回答该问题”。\n\n问题: {q}\n\n回答:",
        "塔有多高？", _ZH),
    "chinese, youdao": ("参考信息：\n{0}\n{1}\n---\n我的问题或指令：\n{q}\n---\n请根据上述参考信息回答我的问题或回复我的指令。\n你的回复：", "塔有多高？", _ZH),
    "chinese, elements": ("<指令>根据已知信息，简洁和专业的来回答问题。</指令>\n<已知信息>{0}{1}</已知信息>\n<问题>{q}</问题>\n", "塔有多高？", _ZH),
    "chinese, fastgpt": ("使用 <Data></Data> 标记中的内容作为你的知识:\n\n<Data>\n{0}\n{1}\n</Data>\n\n回答要求：\n- 如果你不清楚答案，你需要澄清。\n\n问题:{q}", "塔有多高？", _ZH),
    "chinese, headings": ("## 参考内容\n{0}\n{1}\n\n## 用户问题\n{q}", "塔有多高？", _ZH),
    "japanese, context": ("以下のコンテキストに基づいて、質問に答えてください：\n\nコンテキスト:\n{0}\n{1}\n\n質問: {q}\n\n回答：", "塔の高さは？", _JA),
    "japanese, no label": ("以下のコンテキストに基づいて、うまく活用させながら質問に答えてください：\n\n{0}\n{1}\n\n---\n\n上記のコンテキストに基づいて、次の質問に答えてください：{q}",
        "塔の高さは？", _JA),
    "japanese, brackets": ("次の資料を読んで質問に答えてください。\n\n【資料】\n{0}\n{1}\n\n【質問】\n{q}", "塔の高さは？", _JA),
    "korean, context": ("다음 문맥을 사용하여 질문에 답하세요.\n\n문맥:\n{0}\n{1}\n\n질문: {q}\n\n답변:", "탑의 높이는?", _KO),
    "korean, no label": ("다음 문맥을 사용하여 마지막 질문에 대한 간결한 답변을 제공하세요.\n답을 모르면 모른다고 말하세요.\n\n{0}\n{1}\n\n질문: {q}", "탑의 높이는?", _KO),
    "russian, context": ("Используй следующий контекст, чтобы ответить на вопрос в конце.\n\nКонтекст:\n{0}\n{1}\n\nВопрос: {q}\nОтвет:\n", "Какова высота башни?", _RU),
    "russian, no label": ("Используй следующий контекст из уроков:\n\n{0}\n{1}\n\nВопрос студента: {q}\n\nОтвет:", "Какова высота башни?", _RU),
    "turkish, numbered": ("Aşağıdaki bağlamı kullanarak soruyu yanıtla.\n\nBağlam:\n{0}\n{1}\n\nSoru: {q}\n\nYanıt:", "Kule ne kadar yüksek?",
        ("Kule 330 m yüksektir.", "Gustave onu 1889'da açtı.")),
    "arabic, context": ("أجب عن السؤال بناءً على السياق التالي.\n\nالسياق:\n{0}\n{1}\n\nالسؤال: {q}\nالجواب:", "ما ارتفاع البرج؟",
        ("ارتفاع البرج 330 مترا.", "افتتحه غوستاف عام 1889.")),
    "ukrainian, context": ("Контекст:\n{0}\n{1}\n\nПитання: {q}\nВідповідь:", "Яка висота вежі?", ("Висота вежі 330 м.", "Гюстав відкрив її 1889 року.")),
    "swedish, context": ("Svara på frågan utifrån sammanhanget nedan.\n\nKontext:\n{0}\n{1}\n\nFråga: {q}\nSvar:", "Hur högt är tornet?",
        ("Tornet är 330 m högt.", "Gustave öppnade det 1889.")),
    "czech, context": ("Kontext:\n{0}\n{1}\n\nOtázka: {q}\nOdpověď:", "Jak vysoká je věž?", ("Věž je vysoká 330 m.", "Gustave ji otevřel roku 1889.")),
    "vietnamese, context": ("Ngữ cảnh:\n{0}\n{1}\n\nCâu hỏi: {q}\nTrả lời:", "Tháp cao bao nhiêu?", ("Tháp cao 330 m.", "Gustave khánh thành năm 1889.")),
    "hindi, context": ("संदर्भ:\n{0}\n{1}\n\nप्रश्न: {q}\nउत्तर:", "मीनार कितनी ऊँची है?", ("मीनार 330 मीटर ऊँची है।", "गुस्ताव ने इसे 1889 में खोला।")),
}  # fmt: skip
"""By language: the template, its question, its documents."""

NOT_READ: Mapping[str, str] = {
    # Its words run together (BEGINCONTEXT), and "input" is what the writer gives elsewhere.
    "airoboros": "BEGININPUT\nBEGINCONTEXT\nurl: https://a.example/1\nENDCONTEXT\n{0}\n{1}\nENDINPUT\nBEGININSTRUCTION\n{q}\nENDINSTRUCTION",
}
"""Forms whose documents count as the user's own words."""

OTHERS: Mapping[str, tuple[str, str, tuple[str, str]]] = {
    "a question behind above": (("Use the following pieces of context to answer the user's question.\n# If you don't know the answer, just say that you don't know."
        "\n# ----------------------------------------------------------------\n{0}\n{1}\n# ----------------------------------------------------------------\n\n"
        "The user's question that you have to answer from the above pieces of context is:\n{q}\n"), ASKED, (TALL, BUILT)),
    "information": (("Answer the following question based on the provided information.\n\nInformation:\n{0}\n{1}\n\nQuestion: {q}\n\nProvide a clear and concise "
        "answer:"), ASKED, (TALL, BUILT)),
    "capitals": ("Use the following pieces of context to answer the question.\n\nCONTEXT:\n{0}\n{1}\n\nQUESTION:\n{q}\n\nANSWER (cite sources):", ASKED, (TALL, BUILT)),
    "a context with a remark": (("You are concise.\n\nCONTEXT: (each item shown below; do NOT invent facts outside these)\n{0}\n{1}\nUSER: {q}\n\nINSTRUCTIONS:\n1. Use only "
        "the context above.\n2. Provide a clear answer with numbered bullets.\n"), ASKED, (TALL, BUILT)),
    "two sections": (("You are an after-sales service assistant.\nYou will receive two sections: CONTEXT and QUESTION.\n\nRules:\n- Use only the information found in "
        "CONTEXT to answer the QUESTION.\n- Never invent details, policies, or procedures.\n\nOutput Format:\n1. Provide exactly 3 bullet points.\n\nCONTEXT:\n{0}\n{1}\n\n"
        "QUESTION:\n{q}\n"), ASKED, (TALL, BUILT)),
    "documents with headings": (("## Document No & Rank: 1\n### Content: {0}\n\n## Document No & Rank: 2\n### Content: {1}\n\nBased only on the above documents, please generate "
        "an answer for the user\n{q}\n## Answer:"), ASKED, (TALL, BUILT)),
    "passages": ("Passages: {0} {1} \n\n Question: {q} \n\n Answer: ", ASKED, (TALL, BUILT)),
    "start context block": ("{q}\n\nSTART CONTEXT BLOCK\n{0}\n{1}\nEND OF CONTEXT BLOCK\n", ASKED, (TALL, BUILT)),
    "lightrag": ("---Role---\n\nYou are a helpful assistant.\n\n---Context---\n\n{0}\n{1}\n\n---User Query---\n\n{q}", ASKED, (TALL, BUILT)),
    "graphrag": ("---Goal---\n\nSummarize what is asked for.\n\n---Data tables---\n\n{0}\n{1}\n\n---Question---\n\n{q}", ASKED, (TALL, BUILT)),
    "crewai": ("{q}\n\nThis is the context you're working with:\n{0}\n{1}", ASKED, (TALL, BUILT)),
    "an attached file": ("{q}\n\nAttached file towers.md:\n{0}\n{1}", ASKED, (TALL, BUILT)),
    "contents of a file": ("Contents of /docs/towers.md:\n\n{0}\n{1}\n\n{q}", ASKED, (TALL, BUILT)),
    "a thread": ("Can you sum this thread up for me?\n\n> On Monday, Ann wrote:\n> {0}\n> {1}", "", (TALL, BUILT)),
    "text first, order last": ("{0} {1} It has four feet and a restaurant.\n\nSummarize the text above in one sentence.", "", (TALL, BUILT)),
    "search results": ('Web search results for "tower":\n\n1. Towers (https://a.example)\n{0}\n\n2. Years (https://b.example)\n{1}\n\n{q}', ASKED, (TALL, BUILT)),
    "german, newsletter": ("Du bist ein hilfsreicher Assistent.\n\nNEWSLETTER/ARTIKEL-INHALT:\n{0}\n{1}\n\nFRAGE: {q}\n\nANWEISUNGEN:\n1. Bleibe bei den Fakten.", "Wie hoch ist der Turm?", _DE),
    "german, sources by number": ("Quelle 1:\n{0}\n\nQuelle 2:\n{1}\n\nNutzerfrage: {q}", "Wie hoch ist der Turm?", _DE),
    "german, translate": ("Übersetze den folgenden Text ins Englische:\n{0} {1}", "", _DE),
    "german, bold": ("**Frage:** {q}\n\n**Auszüge aus den Unterlagen:**\n{0}\n{1}", "Wie hoch ist der Turm?", _DE),
    "french, bulletins": ("CONTEXTE : {0}\n-------\nEXTRAIT DES BULLETINS OFFICIELS DES DÉLIBÉRATIONS DE LA VILLE DE PARIS :\n{1}\nHumain : {q}\nAssistant :",
        "Quelle est la hauteur de la tour ?", _FR),
    "french, numbered orders": (("1. Utilisez les éléments de contexte suivants pour répondre à la question à la fin.\n2. Gardez la réponse concise.\n\nContexte: {0} {1}\n\n"
        "Question: {q}\n\nRéponse utile:"), "Quelle est la hauteur de la tour ?", _FR),
    "french, summarise": ("Résume le texte suivant :\n\n{0} {1}", "", _FR),
    "french, documents given": ("Voici les documents fournis :\n{0}\n{1}\n\nQuelle est la hauteur de la tour ?", "Quelle est la hauteur de la tour ?", _FR),
    "italian, laws": (("Testi normativi di riferimento:\n\n[1] codice, art. 1\n{0}\n\n[2] codice, art. 2\n{1}\n\nRispondi alla domanda basandoti sui testi sopra, se sono "
        "pertinenti.\n\nDomanda: {q}"), "Quanto è alta la torre?", ("La torre è alta 330 m.", "Gustave la aprì nel 1889.")),
    "italian, order last": ("Contesto:\n{0}\n{1}\n\nDomanda: {q}\n\nRispondi alla domanda basandoti solo sul contesto fornito. Se non trovi la risposta, dillo.",
        "Quanto è alta la torre?", ("La torre è alta 330 m.", "Gustave la aprì nel 1889.")),
    "portuguese, minutes": ("Transcrição da reunião 'torre':\n{0}\n{1}\n\nPergunta: {q}", "Qual é a altura da torre?", ("A torre tem 330 m.", "Gustave abriu-a em 1889.")),
    "portuguese, remark in the label": (("Conteúdo dos CVs (incluindo nome do ficheiro e URL):\n{0}\n{1}\n\nPergunta sobre os CVs:\n{q}\n\nPor favor, responda à pergunta com "
        "base na informação dos CVs fornecidos."), "Qual é a altura da torre?", ("A torre tem 330 m.", "Gustave abriu-a em 1889.")),
    "polish, knowledge base": ("Odpowiedz na pytanie na podstawie poniższej bazy wiedzy parafii.\nJeśli informacje są niepełne, wskaż to.\n\nBAZA WIEDZY:\n{0}\n{1}\n\nPYTANIE: {q}",
        "Jak wysoka jest wieża?", ("Wieża ma 330 m wysokości.", "Gustave otworzył ją w 1889 roku.")),
    "dutch, haystack": ("Beantwoord de vraag op basis van de context.\nContext:\n  Bestand: a.md\n  Inhoud: {0}\n  Bestand: b.md\n  Inhoud: {1}\nVraag: {q}", "Hoe hoog is de toren?",
        ("De toren is 330 m hoog.", "Gustave opende hem in 1889.")),
    "japanese, no question": ("以下のコンテキストに基づいて、ヒントを生成してください。\n\n【コンテキスト】\n{0}\n{1}", "", _JA),
    "japanese, summarise": ("次の文章を要約してください。\n\n{0}{1}", "", _JA),
    "korean, documents": ("다음 문서들을 참고하여 질문에 답하세요.\n\n문서:\n{0}\n{1}\n\n질문: {q}\n\n답변 시 출처를 반드시 명시하세요.", "탑의 높이는?", _KO),
    "russian, files": ("Используй следующий контекст из нескольких файлов:\n\n--- FILE: a.md ---\n{0}\n--- FILE: b.md ---\n{1}\n\nВопрос: {q}", "Какова высота башни?", _RU),
    "turkish, sources": ("Aşağıdaki bağlamı (context) kullanarak kullanıcı sorusunu cevapla.\n\nBAĞLAM:\n[Source: a]\n{0}\n\n[Source: b]\n{1}\n\nSORU:\n{q}\n\nCEVAP:", "Kule ne kadar yüksek?",
        ("Kule 330 m yüksektir.", "Gustave onu 1889'da açtı.")),
    "chinese, summarise": ("请总结以下文章：\n\n{0}{1}", "", _ZH),
    "chinese, order last": ("【文档1】{0}\n【文档2】{1}\n\n请根据以上文档回答：{q}", "塔有多高？", _ZH),
    "romanian": ("Context:\n{0}\n{1}\n\nÎntrebare: {q}\nRăspuns:", "Cât de înalt este turnul?", ("Turnul are 330 m.", "Gustave l-a deschis în 1889.")),
    "indonesian": ("Gunakan konteks berikut untuk menjawab.\n\nKonteks:\n{0}\n{1}\n\nPertanyaan: {q}\nJawaban:", "Berapa tinggi menara?", ("Menara itu setinggi 330 m.", "Gustave membukanya pada 1889.")),
    "persian": ("متن:\n{0}\n{1}\n\nسوال: {q}\nپاسخ:", "ارتفاع برج چقدر است؟", ("ارتفاع برج 330 متر است.", "گوستاو آن را در 1889 گشود.")),
}  # fmt: skip
"""Forms that were looked at after the search had been written."""

OWN_WORDS = (
    "Write the following function:\n- it takes a list\n- it returns the longest word",
    "This script should do two things:\n- read a file\n- print it",
    "I have two documents: a contract and an invoice. Which one comes first?",
    "My file size: 3 MB. Is that too much?",
    "Response time: 5 ms. Page owner: Ann. Is that fine?",
    "Translate into French: good morning",
    "Translate 'good morning' to French",
    "Write a report on towers.\n\nUse a formal tone. Keep it under 300 words.\n\nThe deadline is Friday.",
    "Summarize the contract and mail it to Bob.\n\nUse a formal tone. The deadline is Friday.",
    "Send an email:\nTo: bob@acme.example\nSubject: Hello\nTell him that I am late.",
    "I want to build an app.\n\n---\n\nIt should have a login.\n\n---\n\nIt should be blue.",
    "Give me a table of the towers of Paris.",
    "Please keep to these rules:\n- be short\n- be kind",
    "Remember: the text has to be short, and no table is needed.",
    "[ ] buy milk\n[x] call Ann\nWhat is left?",
    "See [the report](https://a.example/report) and tell me what it says.",
    "Is x < 3 and y > 5 and <b>bold</b>?",
    "Reply to Bob: we accept the contract, and the price is fine.",
    "Ich habe zwei Dokumente: einen Vertrag und eine Rechnung. Was kommt zuerst?",
    "Schreib mir einen Text: er soll kurz sein und von Türmen handeln.",
    "Kannst du mir den Inhalt des Vertrags erklären? Mir geht es um die Daten.",
    "Mein Problem: der Bericht ist zu lang.",
    "J'ai deux documents : un contrat et une facture. Lequel vient en premier ?",
    "Écris-moi un texte : il doit parler de la tour.",
    "Tengo dos documentos: un contrato y una factura. ¿Cuál va primero?",
    "Ho due documenti: un contratto e una fattura. Quale viene prima?",
    "Tenho dois documentos: um contrato e uma fatura. Qual vem primeiro?",
    "Ik heb twee documenten: een contract en een factuur. Welke komt eerst?",
    "Mam dwa dokumenty: umowę i fakturę. Który jest pierwszy?",
    "У меня два документа: договор и счёт. Какой первый?",
    "我有两个文件：合同和发票。哪个在前？",
    "私は二つの文書があります：契約書と請求書です。どちらが先ですか？",
    "İki belgem var: sözleşme ve fatura. Hangisi önce?",
)
"""What people write: nothing in it is given text."""

use tonic::{Status, Streaming};

use super::{Answer, Session, LONGEST_PAUSE, RETRIES};
use crate::api::sidecar::v1::dispatch_stream_response::Content;
use crate::api::sidecar::v1::{DispatchRequest, DispatchResponse, DispatchStreamRequest, DispatchStreamResponse};
use crate::error::{Error, Kind};
use crate::request::Request;

impl Session {
    /// The same call as [`chat`](Self::chat), of which each part is there once it was judged and put on record. Read
    /// [`part`](AnswerStream::part) to the end; then [`into_answer`](AnswerStream::into_answer) has the answer. Dropping it ends the call.
    pub fn stream(&mut self, request: &Request) -> AnswerStream<'_> {
        let (dispatch, text) = (request.message(), String::new());
        AnswerStream { session: self, dispatch, text, call: None, whole: None, ended: None, attempt: 0, settled: false }
    }
}

/// A governed call whose answer arrives in parts. The session's next call waits for its end.
#[derive(Debug)]
pub struct AnswerStream<'a> {
    session: &'a mut Session,
    dispatch: DispatchRequest,
    text: String,
    call: Option<Streaming<DispatchStreamResponse>>,
    whole: Option<DispatchResponse>,
    ended: Option<Result<Answer, Error>>,
    attempt: usize,
    settled: bool,
}

impl AnswerStream<'_> {
    /// The next released part of the text; none: the answer is whole.
    ///
    /// # Errors
    /// Where there is no answer, or the rest of one may not leave: [`text`](Self::text) then has what left. It stays with the same error.
    pub async fn part(&mut self) -> Result<Option<String>, Error> {
        loop {
            match &self.ended {
                Some(Ok(_)) => return Ok(None),
                Some(Err(refused)) => return Err(refused.clone()),
                None => {}
            }
            match self.received().await {
                Ok(Some(text)) => return Ok(Some(text)),
                Ok(None) => {}
                Err(status) => self.failed(status.into()).await,
            }
        }
    }

    /// The parts until now, together.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The answer; none where its parts were not read to the end, or an error ended them.
    #[must_use]
    pub fn into_answer(self) -> Option<Answer> {
        self.ended?.ok()
    }

    /// Reads one message, after it sent the request where no call is open; none: it had no text, or was the end.
    async fn received(&mut self) -> Result<Option<String>, Status> {
        let call = match &mut self.call {
            Some(open) => open,
            none => {
                let dispatch = DispatchRequest { context: Some(self.session.context()), ..self.dispatch.clone() };
                let message = self.session.outgoing(DispatchStreamRequest { dispatch: Some(dispatch) })?;
                none.insert(self.session.client.sidecar().dispatch_stream(message).await?.into_inner())
            }
        };
        match call.message().await?.map(|message| message.content) {
            Some(Some(Content::Part(part))) if !part.text.is_empty() => {
                self.text.push_str(&part.text);
                return Ok(Some(part.text));
            }
            Some(Some(Content::Whole(whole))) => self.whole = Some(whole),
            Some(_) => {}
            None => {
                let whole = self.whole.take().ok_or_else(|| Status::unknown("the stream ended without an answer"))?;
                self.ended = Some(Ok(self.session.answer(whole)));
            }
        }
        Ok(None)
    }

    /// Ends with the refusal, or lets the request be sent once more where nothing has left and that may help.
    async fn failed(&mut self, refused: Error) {
        (self.call, self.whole) = (None, None);
        self.session.learn(&refused);
        let begun = !self.text.is_empty(); // what has left cannot be asked for again
        let lost = refused.reason == "WINDOW_ALREADY_SETTLED" && !self.settled;
        let pause = refused.retry_after.filter(|_| self.attempt < RETRIES && refused.kind != Kind::SafetyHalt);
        if begun || !lost && pause.is_none() {
            self.ended = Some(Err(refused));
            return;
        }
        self.attempt += 1;
        self.settled |= lost;
        if let Some(pause) = pause {
            tokio::time::sleep(pause.min(LONGEST_PAUSE)).await;
        }
    }
}

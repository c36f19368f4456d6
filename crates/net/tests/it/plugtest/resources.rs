//! The resources that the plugtests ask a server for.

use std::future::{Ready, ready};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use coap_numbers::option;
use coapace_net::{Code, Rejection, Request, Resource, Response, Router};

/// Content-Formats (RFC 7252 §12.3).
pub(crate) const TEXT: u16 = 0;
pub(crate) const LINKS: u16 = 40;
pub(crate) const XML: u16 = 41;
pub(crate) const JSON: u16 = 50;

/// The time that /separate takes.
pub(crate) const SEPARATE: Duration = Duration::from_millis(800);

/// For how many seconds /obs is fresh.
pub(crate) const OBS_MAX_AGE: u32 = 1;

/// A body of three blocks of 1024 bytes, each different from the others.
pub(crate) fn large() -> String {
    let lines: Vec<String> = (0..150).map(|line| format!("line {line:3} of /lar\n")).collect();
    lines.concat()
}

/// The texts of the resources, and the resources to notify when they change.
#[derive(Clone)]
pub(crate) struct Contents {
    things: Arc<Mutex<Things>>,
    obs: Resource,
    obs_non: Resource,
}

struct Things {
    validate: String,
    create1: Option<String>,
    large_update: String,
    large_create: Option<String>,
    /// Nothing once it is deleted.
    obs: Option<(u16, String)>,
}

impl Default for Contents {
    fn default() -> Self {
        let things = Things {
            validate: "first".into(),
            create1: None,
            large_update: String::new(),
            large_create: None,
            obs: Some((TEXT, "0".into())),
        };
        Self {
            things: Arc::new(Mutex::new(things)),
            obs: Resource::new(),
            obs_non: Resource::non_confirmable(),
        }
    }
}

type Answer = Result<Response, Rejection>;

/// A handler that answers at once.
fn now(answer: impl Fn(&Request) -> Answer + Clone) -> impl Fn(Request) -> Ready<Answer> + Clone {
    move |request| ready(answer(&request))
}

fn text(text: impl Into<String>) -> Response {
    Response::content(text.into()).content_format(TEXT)
}

/// A handler that always says the same.
fn fixed(response: Response) -> impl Fn(Request) -> Ready<Answer> + Clone {
    now(move |_| Ok(response.clone()))
}

async fn separate(_: Request) -> Answer {
    tokio::time::sleep(SEPARATE).await;
    Ok(text("separate"))
}

fn multi_format(request: &Request) -> Answer {
    match request.uint(option::ACCEPT) {
        None | Some(0) => Ok(text("in text")),
        Some(41) => Ok(Response::content("<in>XML</in>").content_format(XML)),
        Some(_) => Err(Code::NOT_ACCEPTABLE.into()),
    }
}

/// The ETag of a text that differs in its first letter from all others.
fn etag(text: &str) -> &[u8] {
    &text.as_bytes()[..1]
}

impl Contents {
    fn things(&self) -> MutexGuard<'_, Things> {
        self.things.lock().expect("no handler panics")
    }

    /// Sets what /obs says.
    pub(crate) fn set_obs(&self, text: &str) {
        self.change_obs(Some((TEXT, text.into())));
    }

    fn change_obs(&self, obs: Option<(u16, String)>) {
        self.things().obs = obs;
        self.obs.changed();
        self.obs_non.changed();
    }

    /// A handler of these resources that answers at once.
    fn handler(
        &self,
        answer: fn(&Self, &Request) -> Answer,
    ) -> impl Fn(Request) -> Ready<Answer> + Clone + Send + use<> {
        let state = self.clone();
        now(move |request| answer(&state, request))
    }

    fn validate(&self, request: &Request) -> Response {
        let things = self.things();
        let tag = etag(&things.validate);
        if request.options().any(|option| option == (option::ETAG, tag)) {
            return Response::new(Code::VALID).option(option::ETAG, tag);
        }
        text(things.validate.clone()).option(option::ETAG, tag)
    }

    fn update(&self, request: &Request) -> Answer {
        let mut things = self.things();
        let wanted = request.option(option::IF_MATCH);
        if wanted.is_some_and(|wanted| wanted != etag(&things.validate)) {
            return Err(Code::PRECONDITION_FAILED.into());
        }
        things.validate = request.text()?.into();
        Ok(Response::changed())
    }

    fn create1(&self, request: &Request) -> Answer {
        let mut things = self.things();
        if request.option(option::IF_NONE_MATCH).is_some() && things.create1.is_some() {
            return Err(Code::PRECONDITION_FAILED.into());
        }
        things.create1 = Some(request.text()?.into());
        Ok(Response::created())
    }

    fn large_update(&self, request: &Request) -> Answer {
        self.things().large_update = request.text()?.into();
        Ok(Response::changed())
    }

    fn large_create(&self, request: &Request) -> Answer {
        self.things().large_create = Some(request.text()?.into());
        let location = Response::created().option(option::LOCATION_PATH, b"large-create");
        Ok(location.option(option::LOCATION_PATH, b"1"))
    }

    fn created(&self, _: &Request) -> Answer {
        self.things().large_create.clone().map(text).ok_or(Rejection::not_found())
    }

    fn obs(&self, _: &Request) -> Answer {
        let (format, text) = self.things().obs.clone().ok_or(Rejection::not_found())?;
        Ok(Response::content(text).content_format(format).max_age(OBS_MAX_AGE))
    }

    /// /obs, so often that it takes blocks if it is more than one digit.
    fn obs_pumping(&self, request: &Request) -> Answer {
        let mut response = self.obs(request)?;
        if response.payload.len() > 1 {
            response.payload = response.payload.repeat(600).into();
        }
        Ok(response)
    }

    fn update_obs(&self, request: &Request) -> Answer {
        let format = request.uint(option::CONTENT_FORMAT).unwrap_or(0) as u16;
        self.change_obs(Some((format, request.text()?.into())));
        Ok(Response::changed())
    }

    fn delete_obs(&self) -> Response {
        self.change_obs(None);
        Response::deleted()
    }

    pub(crate) fn router(&self) -> Router {
        let located =
            ["location1", "location2", "location3"].iter().fold(Response::created(), |response, part| {
                response.option(option::LOCATION_PATH, part.as_bytes())
            });
        let queried = Response::created()
            .option(option::LOCATION_QUERY, b"first=1")
            .option(option::LOCATION_QUERY, b"second=2");
        let links = Response::content("</path/sub1>,</path/sub2>").content_format(LINKS);
        Router::new()
            .get("/test", fixed(text("test")))
            .put("/test", fixed(Response::changed()))
            .post("/test", fixed(located))
            .delete("/test", fixed(Response::deleted()))
            .get("/separate", separate)
            .get("/seg1/seg2/seg3", fixed(text("three segments")))
            .get("/query", fixed(text("asked")))
            .post("/location-query", fixed(queried))
            .get("/multi-format", now(multi_format))
            .get("/validate", self.handler(|state, request| Ok(state.validate(request))))
            .put("/validate", self.handler(Self::update))
            .conditional("/validate")
            .put("/create1", self.handler(Self::create1))
            .conditional("/create1")
            .get("/large", fixed(text(large())))
            .get("/large-update", self.handler(|state, _| Ok(text(state.things().large_update.clone()))))
            .put("/large-update", self.handler(Self::large_update))
            .post("/large-create", self.handler(Self::large_create))
            .get("/large-create/1", self.handler(Self::created))
            .post("/large-post", fixed(Response::changed().payload(large()).content_format(TEXT)))
            .observe("/obs", &self.obs, self.handler(Self::obs))
            .post("/obs", self.handler(Self::update_obs))
            .delete("/obs", self.handler(|state, _| Ok(state.delete_obs())))
            .observe("/obs-non", &self.obs_non, self.handler(Self::obs))
            .observe("/obs-pumping", &self.obs, self.handler(Self::obs_pumping))
            .get("/link1", fixed(text("1")))
            .get("/link2", fixed(text("2")))
            .get("/link3", fixed(text("3")))
            .get("/path", fixed(links))
            .get("/path/sub1", fixed(text("/path/sub1")))
            .get("/path/sub2", fixed(text("/path/sub2")))
            .describe("/test", &[("rt", "Type1 Type2"), ("if", "If1")])
            .describe("/separate", &[("rt", "Type2 Type3"), ("if", "If2")])
            .describe("/query", &[("rt", "Type1 Type3"), ("if", "foo")])
            .describe("/large", &[("sz", "2550"), ("rt", "block")])
            .describe("/path", &[("ct", "40")])
    }
}

/* SPDX-License-Identifier: MIT */
#include "host/journal.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/json.h"
#include "base/limits.h"
#include "host/audit.h"
#include "host/history.h"
#include "host/import.h"
#include "host/internal.h"
#include "host/requests.h"
#include "mcp/mcp.h"
#include "run/bash.h"
#include "run/run.h"
#include "store/store.h"

#define RETRY_MS 1000
/* How long what nobody waits for waits for something to be committed with. */
#define COMPANY_MS 20
#define MAX_FACTS MIB(512)
/* Free bytes at a start: for its end, its log's beginning, what is said of it. */
#define DISK_RESERVE MIB(1)
/* One start-up need not forget everything. */
#define TIDY_STEPS 20
/* What has become old is forgotten each hour, and what is too much, so often. */
#define TIDY_MS INT64_C(3600000)
#define TIDY_EVERY 100

struct journal {
	struct host *host;
	struct store *store;
	struct store_batch filling, committing;
	struct map
		recorded; /* errand_task -> itself, of ends on their way through the core */
	size_t n_patient; /* facts of filling that nobody waits for, */
	int64_t patient_ms; /* and until when; INT64_MAX: there are none */
	uv_work_t work;
	bool wants_look;       /* is the database still in its place? */
	bool was_gone;         /* it was not */
	bool wants_tidy;       /* the next commit tidies */
	bool is_tidying;       /* the one under way does */
	bool has_more_to_tidy; /* and has left some */
	struct store_limits limits;
	size_t n_dropped;       /* tasks, since the start */
	int64_t tidy_ms;        /* when it is to be tidied next */
	bool is_busy;           /* a worker has the store and the batch that is committed */
	int rc;                 /* of the last commit */
	struct err err;         /* and what it said */
	int64_t retry_ms;       /* INT64_MAX: nothing is to be tried again */
	char trouble[ERR_TEXT]; /* of the disk, since a commit failed; "": none */
	char boot[40];
	struct requests requests;
	/* Only between loading and restoring: */
	struct buf facts;   /* the array for errand_restore() */
	struct buf owners;  /* names, each ended by a NUL */
	struct buf away;    /* struct away, each followed by its name and a NUL */
	struct buf dropped; /* run folders that nobody asks for, each ended by a NUL */
	struct map places;  /* errand_task -> struct place */
};

/* Where a task of the dead host ran, and why its end had been asked for. */
struct place {
	char *uid, *kill_reason; /* NULL: it had not been, or for no reason */
};

/* Since when nobody has been connected under a name. */
struct away {
	int64_t seen; /* wall */
	bool is_here; /* somebody was, when the host died */
};

/* ---- loading ---- */

/* Whoever dropped the task may have died before its folder went. */
static void on_dropped(void *ud, const char *uid)
{
	struct journal *j = ud;

	buf_add(&j->dropped, uid, strlen(uid) + 1);
}

static void on_run(void *ud, const struct store_run *r)
{
	struct journal *j = ud;
	struct place *p;

	if (!r->is_listed) {
		on_dropped(j, r->uid.ptr);
		return;
	}
	p = mem_new(NULL, sizeof(*p));
	p->uid = mem_dup(NULL, r->uid.ptr, r->uid.len);
	if (r->kill_reason.ptr)
		p->kill_reason = mem_dup(NULL, r->kill_reason.ptr, r->kill_reason.len);
	map_put(&j->places, r->task, p);
}

static void on_request(void *ud, const struct store_request *r)
{
	struct journal *j = ud;
	char nonce[HELLO_NONCE + 1];

	if (!r->reply.ptr || r->nonce.len != HELLO_NONCE || r->sequence <= 0)
		return;
	memcpy(nonce, r->nonce.ptr, HELLO_NONCE);
	nonce[HELLO_NONCE] = 0;
	requests_put(&j->requests, nonce, (uint64_t)r->sequence, r->reply.ptr,
		     r->reply.len);
}

static void on_session(void *ud, const struct store_session *s)
{
	struct journal *j = ud;
	struct away a = {.seen = s->seen, .is_here = s->pid > 0};

	if (memchr(s->name.ptr, 0, s->name.len))
		return;
	buf_add(&j->away, (const char *)&a, sizeof(a));
	buf_add(&j->away, s->name.ptr, s->name.len);
	buf_addc(&j->away, 0);
}

static bool is_name(struct js_span fact, const char *name)
{
	size_t n = strlen(name);

	return fact.len == n + 2 && memcmp(fact.ptr + 1, name, n) == 0;
}

static void note_owner(struct journal *j, const char *json, size_t len)
{
	struct js *fact = NULL;
	const char *name;
	size_t n;

	if (js_parse(json, len, &fact, NULL) != 0) {
		js_free(fact);
		return;
	}
	name = js_string(js_get(fact, "session"), &n);
	if (name && memchr(name, 0, n) == NULL)
		buf_add(&j->owners, name, n + 1);
	js_free(fact);
}

/* The agent that is last and goes again only holds the highest ids. */
static void drop_last_owner(struct journal *j)
{
	size_t len = j->owners.len;

	while (len > 1 && j->owners.data[len - 2] != 0)
		len--;
	buf_cut(&j->owners, len > 0 ? len - 1 : 0);
}

static void on_fact(void *ud, const char *json, size_t len)
{
	struct journal *j = ud;
	struct js_span name = js_member((struct js_span){json, len}, "fact");

	buf_addc(&j->facts, j->facts.len > 0 ? ',' : '[');
	buf_add(&j->facts, json, len);
	if (is_name(name, "agent"))
		note_owner(j, json, len);
	else if (is_name(name, "agent-gone"))
		drop_last_owner(j);
}

static int tidy(struct journal *j, struct err *err)
{
	bool is_more = true;
	int rc = 0;

	for (int i = 0; i < TIDY_STEPS && is_more && rc == 0; i++)
		rc = store_tidy(j->store, &j->limits, clock_wall_ms(), on_dropped, j,
				&is_more, err);
	return rc;
}

static int load(struct journal *j, struct err *err)
{
	struct store_loader loader = {
		.run = on_run,
		.session = on_session,
		.request = on_request,
		.fact = on_fact,
		.ud = j,
	};
	int rc = tidy(j, err);

	if (rc == 0)
		rc = store_load(j->store, &loader, err);
	buf_adds(&j->facts, j->facts.len > 0 ? "]" : "[]");
	if (rc == 0 &&
	    (buf_error(&j->facts) || buf_error(&j->owners) || buf_error(&j->away)))
		rc = err_set(err, ERR_LIMIT, "the store holds more than can be loaded");
	return rc;
}

static void read_boot(char *ret, size_t size)
{
	autoclose int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : read(fd, ret, size - 1);

	ret[n > 0 ? n : 0] = 0;
	ret[strcspn(ret, "\n")] = 0;
}

static void free_places(struct journal *j)
{
	for (size_t i = 0; i < j->places.cap; i++) {
		struct place *p = j->places.slots[i].value;

		if (!j->places.slots[i].key)
			continue;
		mem_free(NULL, p->uid);
		mem_free(NULL, p->kill_reason);
		mem_free(NULL, p);
	}
	map_release(&j->places);
}

int journal_new(struct host *h, struct journal **ret, struct err *err)
{
	struct journal *j = mem_new(NULL, sizeof(*j));
	char *note = NULL;
	int rc;

	j->host = h;
	j->retry_ms = j->patient_ms = INT64_MAX;
	j->limits = history_limits(&h->config);
	j->tidy_ms = clock_mono_ms() + TIDY_MS;
	j->work.data = j;
	store_batch_init(&j->filling);
	store_batch_init(&j->committing);
	requests_init(&j->requests);
	buf_init(&j->facts, MAX_FACTS);
	buf_init(&j->owners, MAX_FACTS);
	buf_init(&j->away, MAX_FACTS);
	buf_init(&j->dropped, MAX_FACTS);
	map_init(&j->places, NULL);
	map_init(&j->recorded, NULL);
	read_boot(j->boot, sizeof(j->boot));
	rc = store_open(h->state.path, STORE_WRITE, &j->store, &note, err);
	if (note)
		host_say(note);
	mem_free(NULL, note);
	if (rc == 0)
		rc = load(j, err);
	if (rc < 0)
		journal_free(j);
	else
		*ret = j;
	return rc;
}

/* ---- restoring ---- */

static int adopt(void *ud, errand_host *h, errand_task t, const char *record, size_t len,
		 struct errand_producer *ret, errand_error *e)
{
	struct journal *j = ud;
	const struct place *p = map_get(&j->places, t);

	(void)h;
	if (!p) {
		errand_error_set(e, NULL, NULL, "nobody knows where it ran", ERRAND_NUL);
		return ERRAND_EREFUSED;
	}
	return bash_adopt(j->host->bash, t, record, len, p->uid, p->kill_reason, ret, e);
}

static int set_aside(struct journal *j, const char *why, struct err *err)
{
	char *note = NULL;
	int rc;

	store_close(j->store);
	j->store = NULL;
	rc = store_set_aside(j->host->state.path, why, &note, err);
	if (note)
		host_say(note);
	mem_free(NULL, note);
	return rc < 0 ? rc
		      : err_set(err, ERR_STATE,
				"what was kept could not be restored: %.150s", why);
}

int journal_restore(struct journal *j, struct err *err)
{
	errand_error *e = NULL;
	int rc = errand_restore(j->host->core, j->facts.data, j->facts.len, adopt, j, &e);

	free_places(j);
	buf_release(&j->facts);
	if (rc < 0)
		rc = set_aside(j, errand_error_message(e, NULL), err);
	errand_error_free(e);
	return rc;
}

void journal_sweep(struct journal *j)
{
	const char *end = j->dropped.data + j->dropped.len;

	for (const char *p = j->dropped.data; p < end; p += strlen(p) + 1)
		run_discard(j->host->run, p);
	import_all(j->host, &j->dropped);
	buf_release(&j->dropped);
}

/* A wall clock that was set back has nobody away for less than no time. */
static void put_away(struct journal *j, const struct away *a, const char *name,
		     int64_t mono_ms)
{
	int64_t ago = a->is_here ? 0 : clock_wall_ms() - a->seen;
	size_t len = strlen(name);

	if (!owners_away(&j->host->owners, name, len, mono_ms, ago > 0 ? ago : 0))
		journal_session_gone(j->host, name, len);
	else if (a->is_here)
		journal_seen(j->host, name, len, false);
}

static void enter_away(struct journal *j, int64_t mono_ms)
{
	size_t at = 0;
	struct away a;

	while (at < j->away.len) {
		const char *name = j->away.data + at + sizeof(a);

		memcpy(&a, j->away.data + at, sizeof(a));
		put_away(j, &a, name, mono_ms);
		at += sizeof(a) + strlen(name) + 1;
	}
}

void journal_enter_owners(struct journal *j)
{
	const char *end = j->owners.data + j->owners.len;
	int64_t now = clock_mono_ms();
	errand_agent agent;
	struct err err;

	for (const char *p = j->owners.data; p < end; p += strlen(p) + 1)
		if (strcmp(p, HOST_OPERATOR) != 0 &&
		    owners_agent(&j->host->owners, p, strlen(p), now, &agent, &err) < 0)
			host_say(err.msg);
	buf_release(&j->owners);
	enter_away(j, now);
	buf_release(&j->away);
	j->host->owners.seen = journal_seen;
	j->host->owners.gone = journal_session_gone;
}

/* ---- what happens ---- */

static void note_patient(struct journal *j)
{
	if (j->n_patient++ == 0)
		j->patient_ms = clock_mono_ms() + COMPANY_MS;
}

/* The end of a task whose shim has recorded it: a host that dies before it is kept leaves the
 * next one the record. */
static bool is_recorded_end(struct journal *j, const char *json, size_t len)
{
	static const char *const keys[] = {"fact", "task", "finishedAt"};
	struct js_span found[3];
	uint64_t task;

	js_members((struct js_span){json, len}, keys, found, 3);
	if (!found[1].ptr || !found[2].ptr)
		return false;
	task = strtoull(found[1].ptr, NULL, 10);
	if (!map_get(&j->recorded, task))
		return false;
	map_del(&j->recorded, task);
	return true;
}

void journal_fact(void *ud, const char *json, size_t len)
{
	struct host *h = ud;

	store_put_fact(&h->journal->filling, json, len);
	if (is_recorded_end(h->journal, json, len))
		note_patient(h->journal);
}

static errand_str text(const char *s)
{
	return (errand_str){s, strlen(s)};
}

static void put_run(struct journal *j, errand_task task, const char *uid, int64_t bytes)
{
	store_put_run(&j->filling, &(struct store_run){
					   .task = task,
					   .uid = text(uid),
					   .boot = text(j->boot),
					   .bytes = bytes,
				   });
}

void journal_started(void *ud, errand_task task, const char *uid)
{
	struct host *h = ud;

	put_run(h->journal, task, uid, 0);
}

void journal_kill_reason(void *ud, errand_task task, const char *reason)
{
	struct host *h = ud;

	store_put_kill_reason(&h->journal->filling, task, text(reason));
}

static void put_request(struct journal *j, const char *nonce, uint64_t number,
			const struct request *q)
{
	store_put_request(&j->filling, &(struct store_request){
					       .nonce = text(nonce),
					       .sequence = (int64_t)number,
					       .reply = {q->ids.data, q->ids.len},
					       .at = clock_wall_ms(),
				       });
}

void journal_promised(void *ud, errand_call call, errand_agent owner, const char *id)
{
	struct host *h = ud;
	struct journal *j = h->journal;
	uint64_t number = 0;
	const struct client *c = mcp_caller(h->server, call, &number);

	audit_start(h, owner, id);
	if (c)
		put_request(j, c->hello.nonce, number,
			    requests_note(&j->requests, c->hello.nonce, number, id));
}

void journal_done(struct journal *j, const char *nonce, uint64_t number, const char *result,
		  size_t len)
{
	put_request(j, nonce, number,
		    requests_answer(&j->requests, nonce, number, result, len));
}

const char *journal_was_done(const struct journal *j, const char *nonce, uint64_t number)
{
	return requests_answered(&j->requests, nonce, number);
}

void journal_forget(struct journal *j, const char *nonce)
{
	if (requests_forget(&j->requests, nonce))
		store_drop_requests(&j->filling, text(nonce), INT32_MAX);
}

void journal_seen(void *ud, const char *name, size_t len, bool is_connected)
{
	struct host *h = ud;

	store_put_session(&h->journal->filling, &(struct store_session){
							.name = {name, len},
							.how = text("name"),
							.seen = clock_wall_ms(),
							.pid = is_connected ? getpid() : 0,
						});
}

void journal_session_gone(void *ud, const char *name, size_t len)
{
	struct host *h = ud;

	store_drop_session(&h->journal->filling, (errand_str){name, len});
	audit_session(h, name, len);
}

void journal_ended(void *ud, errand_task task, const char *uid, int64_t bytes,
		   bool is_recorded)
{
	struct host *h = ud;
	struct journal *j = h->journal;

	put_run(j, task, uid, bytes);
	if (!is_recorded)
		return;
	note_patient(j);
	map_put(&j->recorded, task, j);
}

const char *journal_known(void *ud, errand_call call)
{
	struct host *h = ud;
	uint64_t number = 0;
	const struct client *c = mcp_caller(h->server, call, &number);

	return c ? requests_take(&h->journal->requests, c->hello.nonce, number) : NULL;
}

void journal_audit(struct journal *j, const struct store_audit *a)
{
	store_put_audit(&j->filling, a);
}

void journal_dropped(struct journal *j)
{
	j->wants_tidy = ++j->n_dropped % TIDY_EVERY == 0 || j->wants_tidy;
}

void journal_answered(struct journal *j, const char *nonce, uint64_t number)
{
	uint64_t seen;

	if (!requests_seen(&j->requests, nonce, number, &seen))
		return;
	store_drop_requests(&j->filling, text(nonce), (int64_t)seen);
	note_patient(j);
}

void journal_client_gone(struct journal *j, const char *nonce)
{
	requests_rewind(&j->requests, nonce);
}

/* ---- a disk that takes nothing ---- */

const char *journal_trouble(const struct journal *j)
{
	return j->trouble[0] ? j->trouble : NULL;
}

int journal_may_start(void *ud, struct err *err)
{
	const struct host *h = ud;
	const char *trouble = journal_trouble(h->journal), *state = h->state.path;
	struct statvfs fs;

	if (trouble)
		return err_set(
			err, ERR_STATE,
			"cannot start a task: what happens cannot be kept in '%.100s' "
			"(%.100s): nothing was started",
			state, trouble);
	if (fstatvfs(h->state.folder_fd, &fs) == 0 &&
	    (size_t)fs.f_bavail * fs.f_frsize < DISK_RESERVE)
		return err_set(err, ERR_STATE,
			       "cannot start a task: the disk of '%.100s' is full (%zu KiB "
			       "left, a start needs %zu): make room; nothing was started",
			       state, (size_t)fs.f_bavail * fs.f_frsize / 1024,
			       DISK_RESERVE / 1024);
	return 0;
}

/* ---- committing ---- */

static void do_commit(uv_work_t *w)
{
	struct journal *j = w->data;

	if (state_is_elsewhere(&j->host->state))
		j->rc = err_set(&j->err, ERR_NOT_FOUND,
				"the state folder was moved or replaced");
	else if (j->store)
		j->rc = store_keep_place(&j->store, &j->err);
	else
		j->rc = store_open(j->host->state.path, STORE_WRITE, &j->store, NULL,
				   &j->err);
	j->was_gone = j->rc == 1;
	if (j->rc >= 0)
		j->rc = store_commit(j->store, &j->committing, &j->err);
	/* Folders of what is forgotten have gone with their tasks, or go at the next start. */
	if (j->rc >= 0 && j->is_tidying &&
	    store_tidy(j->store, &j->limits, clock_wall_ms(), NULL, NULL,
		       &j->has_more_to_tidy, NULL) < 0)
		j->has_more_to_tidy = false; /* it comes up again */
}

static bool may_pass(int rc)
{
	return rc == -ERR_SYS || rc == -ERR_STATE;
}

/* Once, and not each second. */
static void say_failure(struct journal *j, bool is_passing)
{
	char line[ERR_TEXT + 64];

	(void)snprintf(line, sizeof(line), "cannot keep what happens%s: %s",
		       is_passing ? ", trying again" : "", j->err.msg);
	host_say(line);
}

/* What was planned in the meantime is not to wait for the disk: nobody would hear of it. */
static void note_trouble(struct journal *j)
{
	char why[200];

	(void)snprintf(j->trouble, sizeof(j->trouble), "%.200s", j->err.msg);
	(void)snprintf(why, sizeof(why),
		       "nothing was started: what happens cannot be kept (%.100s): make "
		       "room, then start it again",
		       j->trouble);
	run_refuse(j->host->run, why);
}

static void failed(struct journal *j)
{
	bool is_passing = may_pass(j->rc);

	if (!is_passing || !j->trouble[0])
		say_failure(j, is_passing);
	if (j->rc == -ERR_SYS)
		note_trouble(j);
	j->retry_ms = clock_mono_ms() + RETRY_MS;
	if (!is_passing)
		host_fail(j->host);
}

static void succeeded(struct journal *j)
{
	if (j->trouble[0])
		host_say("what happens is kept again");
	j->trouble[0] = 0;
	store_batch_clear(&j->committing);
	if (j->is_tidying)
		j->wants_tidy = j->has_more_to_tidy;
}

static void after_commit(uv_work_t *w, int status)
{
	struct journal *j = w->data;

	(void)status;
	j->is_busy = false;
	if (j->was_gone)
		host_say("the database was taken away, and has been written anew");
	if (j->rc < 0)
		failed(j);
	else
		succeeded(j);
	host_durable(j->host);
}

/* Is there anything that somebody waits for? */
static bool is_urgent(const struct journal *j)
{
	return j->filling.count > j->n_patient;
}

static void begin(struct journal *j)
{
	j->retry_ms = j->patient_ms = INT64_MAX;
	if (store_batch_move(&j->committing, &j->filling) < 0)
		host_say(
			"more happens than can be kept at once"); /* the next one takes it */
	else
		j->n_patient = 0;
	j->is_busy = true;
	j->wants_look = false;
	j->is_tidying = j->wants_tidy;
	(void)uv_queue_work(&j->host->loop, &j->work, do_commit, after_commit);
}

bool journal_sync(struct journal *j)
{
	if (j->is_busy)
		return false;
	if (j->retry_ms != INT64_MAX)
		return journal_trouble(j) != NULL;
	if (!j->wants_look && !is_urgent(j) && store_batch_is_empty(&j->committing))
		return true;
	begin(j);
	return false;
}

void journal_look(struct journal *j)
{
	j->wants_look = true;
}

bool journal_has_more(const struct journal *j)
{
	return j->retry_ms == INT64_MAX && is_urgent(j);
}

bool journal_is_busy(const struct journal *j)
{
	return j->is_busy || (j->retry_ms != INT64_MAX && !journal_trouble(j));
}

static int64_t commit_deadline(const struct journal *j)
{
	return j->retry_ms != INT64_MAX || j->is_busy ? j->retry_ms : j->patient_ms;
}

int64_t journal_deadline(const struct journal *j)
{
	int64_t due = commit_deadline(j);

	return due < j->tidy_ms ? due : j->tidy_ms;
}

void journal_tick(struct journal *j, int64_t mono_ms)
{
	bool is_due = j->tidy_ms <= mono_ms;

	if (is_due) {
		j->tidy_ms = mono_ms + TIDY_MS;
		j->wants_tidy = true;
	}
	if (!j->is_busy &&
	    (commit_deadline(j) <= mono_ms || (is_due && j->retry_ms == INT64_MAX)))
		begin(j);
}

static void commit_rest(struct journal *j)
{
	struct err err;

	if (store_batch_move(&j->committing, &j->filling) < 0 ||
	    store_commit(j->store, &j->committing, &err) < 0)
		host_say("what happened last could not be kept");
}

void journal_free(struct journal *j)
{
	if (!j)
		return;
	if (j->store)
		commit_rest(j);
	store_close(j->store);
	store_batch_release(&j->filling);
	store_batch_release(&j->committing);
	requests_release(&j->requests);
	free_places(j);
	map_release(&j->recorded);
	buf_release(&j->facts);
	buf_release(&j->owners);
	buf_release(&j->away);
	buf_release(&j->dropped);
	mem_free(NULL, j);
}

/* The upstream of the benchmark: plays prepared answers over HTTP/1.1, plain or with TLS, in one thread.
 *
 *   mock PORT SCRIPTS [CERTIFICATE KEY]
 *
 * PORT 0 takes a free one; the port is printed once the mock listens. SCRIPTS is written by benchmarks/answers.py: for
 * each script a line "NAME PIECES", then for each piece a line with its length and the bytes that go on the wire. The
 * first piece leaves at once, the others one by one, as far apart as the request's "seed" says in microseconds.
 *
 * Which script a request gets: the one its "model" names, with "-stream" behind it where "stream" is true; else "calls"
 * where it offers tools, else "text". A GET gets "models".
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

enum { MOST_SCRIPTS = 32, MOST_CONNECTIONS = 1 << 16, MOST_REQUEST = 1 << 24 };

typedef struct { char *bytes; int length; } Piece;
typedef struct { char name[64]; Piece *pieces; int count; } Script;
typedef struct {
    int open, length, room, next;      /* next: the piece that is due */
    unsigned life;                     /* tells a connection from an earlier one with its number */
    const Script *script;              /* what is being played; NULL between requests */
    int64_t gap;
    char *in;
    SSL *tls;
} Connection;
typedef struct { int64_t due; int fd; unsigned life; } Timer;

static Script scripts[MOST_SCRIPTS];
static int script_count, poller;
static Connection connections[MOST_CONNECTIONS];
static Timer *timers;
static size_t timer_count, timer_room;
static SSL_CTX *tls_context;

static int64_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void fail(const char *what) {
    perror(what);
    exit(1);
}

/* Timers: a heap, the next one due at its top. */

static void add_timer(Timer timer) {
    if (timer_count == timer_room) {
        timer_room = timer_room ? timer_room * 2 : 4096;
        timers = realloc(timers, timer_room * sizeof *timers);
    }
    size_t at = timer_count++;
    for (; at && timers[(at - 1) / 2].due > timer.due; at = (at - 1) / 2) timers[at] = timers[(at - 1) / 2];
    timers[at] = timer;
}

static Timer take_timer(void) {
    Timer top = timers[0], last = timers[--timer_count];
    size_t at = 0, child;
    while ((child = 2 * at + 1) < timer_count) {
        if (child + 1 < timer_count && timers[child + 1].due < timers[child].due) child++;
        if (timers[child].due >= last.due) break;
        timers[at] = timers[child];
        at = child;
    }
    timers[at] = last;
    return top;
}

/* Scripts. */

static void read_scripts(const char *path) {
    FILE *file = fopen(path, "rb");
    if (!file) fail(path);
    Script *script = scripts;
    while (script_count < MOST_SCRIPTS && fscanf(file, "%63s %d", script->name, &script->count) == 2) {
        script->pieces = calloc(script->count, sizeof(Piece));
        for (int i = 0; i < script->count; i++) {
            Piece *piece = &script->pieces[i];
            if (fscanf(file, "%d", &piece->length) != 1 || fgetc(file) != '\n') fail("a piece");
            piece->bytes = malloc(piece->length);
            if (fread(piece->bytes, 1, piece->length, file) != (size_t)piece->length) fail("a piece");
        }
        script_count++, script++;
    }
    fclose(file);
}

static const Script *script_named(const char *name, size_t length, const char *ending) {
    for (int i = 0; i < script_count; i++)
        if (!strncmp(scripts[i].name, name, length) && !strcmp(scripts[i].name + length, ending)) return &scripts[i];
    return NULL;
}

/* Where the value of a member begins, or NULL. Good enough for bodies that the benchmark itself wrote. */
static const char *value_of(const char *body, size_t length, const char *quoted_name) {
    size_t size = strlen(quoted_name);
    const char *at = memmem(body, length, quoted_name, size);
    if (!at) return NULL;
    for (at += size; *at == ' ' || *at == ':'; at++) {}
    return at;
}

static const Script *script_for(const char *body, size_t length) {
    const char *stream = value_of(body, length, "\"stream\""), *model = value_of(body, length, "\"model\"");
    const char *ending = stream && *stream == 't' ? "-stream" : "";
    const Script *named = NULL;
    if (model && *model == '"') named = script_named(model + 1, strcspn(model + 1, "\""), ending);
    if (named) return named;
    return !*ending && value_of(body, length, "\"tools\"") ? script_named("calls", 5, "") : script_named("text", 4, ending);
}

/* Connections. */

static void hang_up(int fd) {
    Connection *c = &connections[fd];
    if (!c->open) return;
    if (c->tls) SSL_free(c->tls);
    c->tls = NULL, c->open = 0, c->script = NULL, c->length = 0, c->life++;
    close(fd);
}

static int send_piece(int fd, const Piece *piece) {
    Connection *c = &connections[fd];
    for (int sent = 0; sent < piece->length;) {
        int n;
        if (c->tls) {
            n = SSL_write(c->tls, piece->bytes + sent, piece->length - sent);
            if (n <= 0 && SSL_get_error(c->tls, n) == SSL_ERROR_WANT_WRITE) errno = EAGAIN;
            else if (n <= 0) errno = EPIPE;
        } else n = send(fd, piece->bytes + sent, piece->length - sent, MSG_NOSIGNAL);
        if (n > 0) sent += n;
        else if (errno == EAGAIN) poll(&(struct pollfd){.fd = fd, .events = POLLOUT}, 1, 100);
        else return hang_up(fd), 0;
    }
    return 1;
}

static void answer_requests(int fd);

static void play(int fd) {
    Connection *c = &connections[fd];
    while (c->script) {
        if (!send_piece(fd, &c->script->pieces[c->next])) return;
        if (++c->next == c->script->count) c->script = NULL;
        else if (c->gap) {
            add_timer((Timer){now() + c->gap, fd, c->life});
            return;
        }
    }
}

static void answer_requests(int fd) {
    Connection *c = &connections[fd];
    while (c->open && !c->script && c->length) {
        char *end = memmem(c->in, c->length, "\r\n\r\n", 4);
        if (!end) return;
        size_t head = end - c->in + 4, body = 0, total;
        *end = 0;
        const char *sized = strcasestr(c->in, "\r\ncontent-length:");
        int chunked = strcasestr(c->in, "\r\ntransfer-encoding: chunked") != NULL;
        *end = '\r';
        if (sized) body = strtoul(sized + 17, NULL, 10);
        total = head + body;
        if (chunked) {
            char *last = memmem(c->in + head, c->length - head, "0\r\n\r\n", 5);
            if (!last) return;
            total = last + 5 - c->in;
        }
        if ((size_t)c->length < total) return;
        int get = !memcmp(c->in, "GET ", 4);
        c->script = get ? script_named("models", 6, "") : script_for(c->in + head, total - head);
        const char *gap = value_of(c->in + head, total - head, "\"seed\"");
        c->gap = gap ? strtoll(gap, NULL, 10) * 1000 : 0;
        c->next = 0;
        memmove(c->in, c->in + total, c->length - total);
        c->length -= total;
        play(fd);
    }
}

static void read_from(int fd) {
    Connection *c = &connections[fd];
    while (c->open) {
        if (c->room - c->length < 4096) {
            if (c->room > MOST_REQUEST) { hang_up(fd); return; }
            c->room = c->room ? c->room * 2 : 8192;
            c->in = realloc(c->in, c->room + 1);
        }
        int room = c->room - c->length;
        int n = c->tls ? SSL_read(c->tls, c->in + c->length, room) : recv(fd, c->in + c->length, room, 0);
        if (n <= 0) {
            int later = c->tls ? SSL_get_error(c->tls, n) == SSL_ERROR_WANT_READ : n < 0 && errno == EAGAIN;
            if (!later) hang_up(fd);
            break;
        }
        c->length += n;
        if (!c->tls && n < room) break;
    }
    if (c->open) {
        if (c->in) c->in[c->length] = 0;
        answer_requests(fd);
    }
}

static void accept_all(int listener) {
    int fd, one = 1;
    while ((fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK)) >= 0) {
        if (fd >= MOST_CONNECTIONS) { close(fd); continue; }
        Connection *c = &connections[fd];
        c->open = 1, c->length = 0, c->script = NULL, c->life++;
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        if (tls_context) {
            c->tls = SSL_new(tls_context);
            SSL_set_fd(c->tls, fd);
            SSL_set_accept_state(c->tls);
        }
        epoll_ctl(poller, EPOLL_CTL_ADD, fd, &(struct epoll_event){.events = EPOLLIN, .data.fd = fd});
    }
}

static int listen_on(int port) {
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), one = 1;
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof at;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(fd, (struct sockaddr *)&at, size) || listen(fd, 4096)) fail("listen");
    getsockname(fd, (struct sockaddr *)&at, &size);
    printf("%d\n", ntohs(at.sin_port));
    fflush(stdout);
    return fd;
}

static void set_alarm(int clock_fd) {
    int64_t due = timer_count ? timers[0].due : 0;
    struct itimerspec at = {.it_value = {due / 1000000000, due % 1000000000}};
    timerfd_settime(clock_fd, TFD_TIMER_ABSTIME, &at, NULL);
}

int main(int count, char **arguments) {
    if (count != 3 && count != 5) return fprintf(stderr, "mock PORT SCRIPTS [CERTIFICATE KEY]\n"), 2;
    signal(SIGPIPE, SIG_IGN);
    prctl(PR_SET_PDEATHSIG, SIGTERM); /* it ends with who started it */
    prctl(PR_SET_TIMERSLACK, 1);
    read_scripts(arguments[2]);
    if (count == 5) {
        tls_context = SSL_CTX_new(TLS_server_method());
        SSL_CTX_set_mode(tls_context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
        if (SSL_CTX_use_certificate_chain_file(tls_context, arguments[3]) != 1 ||
            SSL_CTX_use_PrivateKey_file(tls_context, arguments[4], SSL_FILETYPE_PEM) != 1) fail("certificate");
    }
    poller = epoll_create1(0);
    int listener = listen_on(atoi(arguments[1])), clock_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
    epoll_ctl(poller, EPOLL_CTL_ADD, listener, &(struct epoll_event){.events = EPOLLIN, .data.fd = listener});
    epoll_ctl(poller, EPOLL_CTL_ADD, clock_fd, &(struct epoll_event){.events = EPOLLIN, .data.fd = clock_fd});
    static struct epoll_event events[1024];
    int64_t alarm = 0;
    for (;;) {
        int64_t next = timer_count ? timers[0].due : 0;
        if (next != alarm) set_alarm(clock_fd), alarm = next;
        int ready = epoll_wait(poller, events, 1024, -1);
        for (int i = 0; i < ready; i++) {
            int fd = events[i].data.fd;
            if (fd == listener) accept_all(listener);
            else if (fd == clock_fd) {
                uint64_t expired;
                if (read(clock_fd, &expired, sizeof expired) < 0) continue;
                alarm = 0;
            } else read_from(fd);
        }
        for (int64_t t = now(); timer_count && timers[0].due <= t;) {
            Timer timer = take_timer();
            Connection *c = &connections[timer.fd];
            if (!c->open || c->life != timer.life) continue;
            play(timer.fd);
            answer_requests(timer.fd);
        }
    }
}

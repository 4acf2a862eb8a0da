/* The types behind what casts.c hands around. */
struct inner {
    int number;
};

typedef struct other {
    char name[12];
    long weight;
    struct inner *in;
} other_t;

static struct inner inner = {41};
static other_t other = {"other", 1234, &inner};

void *make_other(void) { return &other; }
unsigned long size_of_other(void) { return sizeof(other_t); }

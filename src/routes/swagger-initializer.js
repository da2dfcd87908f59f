// Starts Swagger UI on the page /docs. Runs in the browser.
(() => {
  /** The credential stays in this tab: a reload keeps it, and closing the tab forgets it. */
  const KEPT = 'authorized';
  /** Prices that are assessed once a month have a point in so many days. */
  const RECENT_DAYS = 62;

  const base = document.currentScript.src;
  const urlOf = (path) => new URL(path, base).href;

  const dayOf = (time) => new Date(time).toISOString().slice(0, 10);

  /** The first day of a request for recent data: counted from the newest value that there is. */
  const recentFrom = async () => {
    const newest = await fetch(urlOf('../../health'))
      .then((answer) => answer.json())
      .then(({ checks }) => checks.data.latestPublishedAt)
      .catch(() => null);
    const to = newest === null ? Date.now() : Date.parse(newest);
    return dayOf(to - RECENT_DAYS * 86_400_000);
  };

  /** Prefills "Try it out" with a request for recent prices: dates in the document grow old. */
  const prefilled = (openapi, dateFrom) => {
    const { parameters, examples } = openapi.components;
    examples.RecentRequest = {
      summary: 'Recent prices',
      value: { filters: { dateFrom }, options: { includeSeries: true } },
    };
    for (const [path, { post }] of Object.entries(openapi.paths)) {
      const body = post?.requestBody?.content['application/json'];
      if (!body || !path.startsWith('/v3/prices/')) continue;
      const recent = { $ref: '#/components/examples/RecentRequest' };
      body.examples = { recent, ...body.examples };
    }
    parameters.dateFrom.example = dateFrom;
    delete parameters.dateTo.example;
    return openapi;
  };

  const Recent = () => ({
    statePlugins: {
      spec: {
        wrapActions: {
          updateSpec: (original) => (text) =>
            recentFrom().then((from) =>
              original(JSON.stringify(prefilled(JSON.parse(text), from))),
            ),
        },
      },
    },
  });

  const KeptInTab = () => ({
    statePlugins: {
      auth: {
        wrapActions: {
          persistAuthorizationIfNeeded: (_original, system) => () => {
            const authorized = system.authSelectors.authorized().toJS();
            sessionStorage.setItem(KEPT, JSON.stringify(authorized));
          },
        },
      },
    },
  });

  window.addEventListener('load', () => {
    const ui = SwaggerUIBundle({
      url: urlOf('../../openapi.json'),
      oauth2RedirectUrl: urlOf('oauth2-redirect.html'),
      dom_id: '#swagger-ui',
      layout: 'StandaloneLayout',
      presets: [SwaggerUIBundle.presets.apis, SwaggerUIStandalonePreset],
      plugins: [SwaggerUIBundle.plugins.DownloadUrl, Recent, KeptInTab],
      docExpansion: 'list',
      deepLinking: true,
      validatorUrl: null,
      // Swagger UI would keep it for every tab, and after the last one is closed.
      persistAuthorization: false,
      onComplete: () => {
        const kept = sessionStorage.getItem(KEPT);
        if (kept !== null) ui.authActions.restoreAuthorization({ authorized: JSON.parse(kept) });
      },
    });
  });
})();
